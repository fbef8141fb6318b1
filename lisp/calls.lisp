;;;; The grid, functions, objects, and their calls.

(in-package #:ninf)

(defvar *functions* (make-hash-table :test #'equal :synchronized t)
  "Functions that CALL has found by name.")

(defun open-grid (&optional configuration)
  "Open the grid of this process. CONFIGURATION: its file, as the C library has it; NIL: the one that NG_CONFIG_FILE
names, or ~/.ngconf, or else a worker for each processor of this machine."
  (load-library)
  (check (grpc-initialize (if configuration (uiop:native-namestring configuration) (cffi:null-pointer))))
  (values))

(defun close-grid ()
  "Cancel all calls that have not ended, end the workers, and close all functions and objects."
  (clrhash *functions*)
  (check (grpc-finalize))
  (values))

(defmacro with-grid ((&optional configuration) &body body)
  "Run BODY with an open grid: see OPEN-GRID."
  `(progn
     (open-grid ,configuration)
     (unwind-protect (progn ,@body)
       (close-grid))))

;;; Functions

(defclass remote-function ()
  ((name :initarg :name :reader name)
   (handle :initarg :handle :reader handle)
   (parameters :initarg :parameters :reader parameters
               :documentation "Its PARAMETERs, in the order of the interface."))
  (:documentation "A remote function, from FUNCTION-HANDLE. Workers are chosen for each call."))

(defmethod print-object ((function remote-function) stream)
  (print-unreadable-object (function stream :type t) (princ (name function) stream)))

(defun make-handle (default on-server server name)
  "A new handle, made by one of two functions of the library."
  (let ((handle (cffi:foreign-alloc :uint8 :count +handle-size+)) (done nil))
    (unwind-protect
         (progn
           (check (if server (funcall on-server handle server name) (funcall default handle name)))
           (setf done t)
           handle)
      (unless done (cffi:foreign-free handle)))))

(defun function-handle (name &key server)
  "The function \"module/function\". Its calls run on SERVER, a server or a host of the configuration or
gridrpc://host:port, or wherever there is room."
  (let ((handle (make-handle #'grpc-function-handle-default #'grpc-function-handle-init server name)))
    (make-instance 'remote-function
                   :name name :handle handle
                   :parameters (read-parameters
                                (lambda (memory capacity count)
                                  (grpc-function-parameters-np handle memory capacity count))))))

(defun close-function (function)
  "Give a function up. Calls that have begun and not ended are cancelled."
  (grpc-function-handle-destruct (handle function))
  (values))

(defun found (function)
  (if (stringp function)
      (or (gethash function *functions*)
          (setf (gethash function *functions*) (function-handle function)))
      function))

;;; Calls

(defun serve (name parameters arguments begin began)
  "Begin a call, pass its session to BEGAN, and wait for its end, while arrays are pinned."
  (let ((*function* name))
    (call-with-stack
     parameters arguments
     (lambda (stack)
       (cffi:with-foreign-object (session :int)
         (check (funcall begin session stack))
         (let ((number (cffi:mem-ref session :int)) (ended nil))
           (unwind-protect
                (progn
                  (funcall began number)
                  (grpc-wait number)
                  (setf ended t)
                  (let ((code (grpc-get-error number)))
                    (unless (zerop code) (fail code number))))
             (unless ended
               ;; A non-local exit: the library writes to the arrays until the call has ended.
               (grpc-cancel number)
               (grpc-wait number))
             (grpc-session-info-remove-np number)))))))
  (values))

(defun run-function (function arguments began)
  (let ((function (found function)))
    (serve (name function) (parameters function) arguments
           (lambda (session stack) (grpc-call-argstack-async (handle function) session stack))
           began)))

(defun call (function &rest arguments)
  "Call FUNCTION, a name or a REMOTE-FUNCTION, and wait until its results are in the arrays of ARGUMENTS.

A non-local exit, such as by SB-SYS:INTERACTIVE-INTERRUPT, cancels the call."
  (run-function function arguments #'identity))

(defclass session ()
  ((lock :initform (sb-thread:make-mutex) :reader lock)
   (number :initform nil :accessor number-of)
   (cancelled :initform nil :accessor cancelledp)
   (thread :accessor thread))
  (:documentation "A call that nobody waits for yet, from CALL-ASYNC. A thread of its own keeps its arrays pinned."))

(defun begin (run)
  "A session whose thread calls RUN with a function that takes the number of the call."
  (let ((session (make-instance 'session)))
    (flet ((began (number)
             (sb-thread:with-mutex ((lock session))
               (setf (number-of session) number)
               (when (cancelledp session) (grpc-cancel number)))))
      (setf (thread session)
            (sb-thread:make-thread
             (lambda ()
               (handler-case (progn (funcall run #'began) nil)
                 (error (condition) condition)))
             :name "call of a remote function")))
    session))

(defun call-async (function &rest arguments)
  "Begin a call of FUNCTION, and return its SESSION. Leave the arrays of ARGUMENTS alone until WAIT."
  (begin (lambda (began) (run-function function arguments began))))

(defun wait (session)
  "Wait until the results of SESSION are in its arrays. Signals the error that it ended with."
  (let ((condition (sb-thread:join-thread (thread session))))
    (when condition (error condition)))
  (values))

(defun done-p (session)
  "Whether SESSION has ended: WAIT would return at once."
  (not (sb-thread:thread-alive-p (thread session))))

(defun cancel (session)
  "Cancel SESSION: it is withdrawn if it waits, and its worker is stopped if it runs. WAIT signals a GRID-ERROR with
the code :CANCELED, if that was in time."
  (sb-thread:with-mutex ((lock session))
    (setf (cancelledp session) t)
    (when (number-of session) (grpc-cancel (number-of session))))
  (values))

;;; Objects

(defclass remote-object ()
  ((name :initarg :name :reader name)
   (handle :initarg :handle :reader handle)
   (methods :initform (make-hash-table :test #'equal :synchronized t) :reader methods
            :documentation "Parameters of the methods that were called."))
  (:documentation "An instance of a class of a module, in a worker of its own. Its methods run one after the other."))

(defmethod print-object ((object remote-object) stream)
  (print-unreadable-object (object stream :type t) (princ (name object) stream)))

(defun make-object (class &key server)
  "Start an object of \"module/class\" on SERVER, or where there is room."
  (make-instance 'remote-object
                 :name class
                 :handle (make-handle #'grpc-object-handle-default-np #'grpc-object-handle-init-np server class)))

(defun close-object (object)
  "End an object: cancel calls that have not ended, have it finalize, and end its worker."
  (grpc-object-handle-destruct-np (handle object))
  (values))

(defmacro with-object ((variable class &rest options) &body body)
  "Run BODY with VARIABLE bound to a new object: see MAKE-OBJECT."
  `(let ((,variable (make-object ,class ,@options)))
     (unwind-protect (progn ,@body)
       (close-object ,variable))))

(defun method-parameters (object method)
  (or (gethash method (methods object))
      (setf (gethash method (methods object))
            (read-parameters
             (lambda (memory capacity count)
               (grpc-method-parameters-np (handle object) method memory capacity count))))))

(defun run-method (object method arguments began)
  (serve (format nil "~a.~a" (name object) method) (method-parameters object method) arguments
         (lambda (session stack) (grpc-invoke-argstack-async-np (handle object) method session stack))
         began))

(defun invoke (object method &rest arguments)
  "Call a method of OBJECT, and wait until its results are in the arrays of ARGUMENTS."
  (run-method object method arguments #'identity))

(defun invoke-async (object method &rest arguments)
  "Begin a call of a method of OBJECT, and return its SESSION. See CALL-ASYNC."
  (begin (lambda (began) (run-method object method arguments began))))
