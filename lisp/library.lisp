;;;; Functions of libgridrpc (see grpc.h), and conditions for its errors.

(in-package #:ninf)

(cffi:define-foreign-library libgridrpc
  (:unix (:or "libgridrpc.so.0" "libgridrpc.so")))

(defun library-directories ()
  "Where the library may be beside the system's folders: GRIDRPC_PREFIX/lib, or that of an active environment."
  (loop for variable in '("GRIDRPC_PREFIX" "VIRTUAL_ENV")
        for prefix = (uiop:getenv variable)
        when (and prefix (string/= prefix ""))
          collect (merge-pathnames "lib/" (uiop:ensure-directory-pathname prefix))))

(defun load-library ()
  "Load libgridrpc, unless it is loaded."
  (unless (cffi:foreign-library-loaded-p 'libgridrpc)
    (let ((cffi:*foreign-library-directories*
            (append (library-directories) cffi:*foreign-library-directories*)))
      (cffi:load-foreign-library 'libgridrpc))))

(defconstant +handle-size+ 32)
(defconstant +no-session+ -1)

(cffi:defcstruct c-parameter
  (name :string)
  (mode :int)
  (type :int)
  (array-p :boolean)
  (callback-p :boolean))

(macrolet ((define (&rest functions)
             `(progn
                ,@(loop for (name result . parameters) in functions
                        for c-name = (substitute #\_ #\- (string-downcase name))
                        collect `(cffi:defcfun (,c-name ,name) ,result ,@parameters)))))
  (define
   (grpc-initialize :int (configuration :string))
   (grpc-finalize :int)
   (grpc-function-handle-default :int (handle :pointer) (name :string))
   (grpc-function-handle-init :int (handle :pointer) (server :string) (name :string))
   (grpc-function-handle-destruct :int (handle :pointer))
   (grpc-function-parameters-np :int
    (handle :pointer) (parameters :pointer) (capacity :size) (count :pointer))
   (grpc-object-handle-default-np :int (handle :pointer) (name :string))
   (grpc-object-handle-init-np :int (handle :pointer) (server :string) (name :string))
   (grpc-object-handle-destruct-np :int (handle :pointer))
   (grpc-method-parameters-np :int
    (handle :pointer) (method :string) (parameters :pointer) (capacity :size) (count :pointer))
   (grpc-arg-stack-new :pointer (room :int))
   (grpc-arg-stack-push-arg :int (stack :pointer) (argument :pointer))
   (grpc-arg-stack-push-array-np :int (stack :pointer) (array :pointer) (bytes :size))
   (grpc-arg-stack-destruct :int (stack :pointer))
   (grpc-call-argstack-async :int (handle :pointer) (session :pointer) (stack :pointer))
   (grpc-invoke-argstack-async-np :int
    (handle :pointer) (method :string) (session :pointer) (stack :pointer))
   (grpc-cancel :int (session :int))
   (grpc-wait :int (session :int))
   (grpc-get-error :int (session :int))
   (grpc-error-detail-np :string (session :int))
   (grpc-session-info-remove-np :int (session :int))))

;;; Conditions

(define-condition grid-error (error)
  ((code :initarg :code :reader grid-error-code
         :documentation "A keyword, the code of the GridRPC standard: :FUNCTION-NOT-FOUND, :SESSION-FAILED ...")
   (detail :initarg :detail :reader grid-error-detail
           :documentation "Cause, host, worker, and the end of its output, as far as known."))
  (:documentation "A call, or another request to the grid, failed.")
  (:report (lambda (condition stream)
             (format stream "~(~a~)~@[: ~a~]" (grid-error-code condition)
                     (let ((detail (grid-error-detail condition)))
                       (and (plusp (length detail)) detail))))))

(define-condition argument-error (error)
  ((function :initarg :function :reader argument-error-function)
   (parameter :initarg :parameter :reader argument-error-parameter
              :documentation "Its name; NIL if the number of arguments is wrong.")
   (problem :initarg :problem :reader argument-error-problem))
  (:documentation "An argument does not fit its parameter: nothing was sent.")
  (:report (lambda (condition stream)
             (format stream "~a: ~@[argument `~a` ~]~a" (argument-error-function condition)
                     (argument-error-parameter condition) (argument-error-problem condition)))))

(defparameter *codes*
  #(:no-error :not-initialized :already-initialized :configfile-not-found :configfile-error
    :server-not-found :function-not-found :invalid-function-handle :invalid-session-id :rpc-refused
    :communication-failed :session-failed :not-completed :none-completed :invalid-object-handle
    :class-not-found :timeout :canceled :other)
  "By the numbers of grpc.h.")

(defun fail (code &optional (session +no-session+))
  "Signal the error that the library has just returned in this thread, or that a session ended with."
  (error 'grid-error :code (if (< code (length *codes*)) (aref *codes* code) :other)
                     :detail (grpc-error-detail-np session)))

(defun check (code)
  (unless (zerop code) (fail code)))
