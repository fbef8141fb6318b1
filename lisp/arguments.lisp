;;;; Arguments of calls: types and lengths compared with the interface, arrays pinned.

(in-package #:ninf)

(defstruct (parameter (:copier nil))
  "A parameter of a function, as its interface declares it."
  (name "" :type string :read-only t)
  (mode :in :type (member :in :out :inout :work) :read-only t)
  (type :double :type keyword :read-only t)
  (array-p nil :read-only t)
  (callback-p nil :read-only t))

(defun outputp (parameter)
  (member (parameter-mode parameter) '(:out :inout)))

(defun textp (parameter)
  (member (parameter-type parameter) '(:string :filename)))

(defparameter *types*
  #((:none)
    (:char :int8 (signed-byte 8)) (:unsigned-char :uint8 (unsigned-byte 8))
    (:short :int16 (signed-byte 16)) (:unsigned-short :uint16 (unsigned-byte 16))
    (:int :int32 (signed-byte 32)) (:unsigned-int :uint32 (unsigned-byte 32))
    (:long :int64 (signed-byte 64)) (:unsigned-long :uint64 (unsigned-byte 64))
    (:long-long :int64 (signed-byte 64)) (:unsigned-long-long :uint64 (unsigned-byte 64))
    (:float :float single-float) (:double :double double-float)
    (:scomplex :float (complex single-float)) (:dcomplex :double (complex double-float))
    (:int8 :int8 (signed-byte 8)) (:uint8 :uint8 (unsigned-byte 8))
    (:int16 :int16 (signed-byte 16)) (:uint16 :uint16 (unsigned-byte 16))
    (:int32 :int32 (signed-byte 32)) (:uint32 :uint32 (unsigned-byte 32))
    (:int64 :int64 (signed-byte 64)) (:uint64 :uint64 (unsigned-byte 64))
    (:string) (:filename))
  "By the numbers of grpc.h: type of the interface, type of CFFI, and type of Lisp.")

(defun lisp-type (parameter)
  (third (find (parameter-type parameter) *types* :key #'first)))

(defun c-type (parameter)
  (second (find (parameter-type parameter) *types* :key #'first)))

(defun complexp-type (parameter)
  (member (parameter-type parameter) '(:scomplex :dcomplex)))

(defun read-parameters (describe)
  "The parameters that DESCRIBE stores: a function of memory, capacity, and the place of the count."
  (cffi:with-foreign-object (count :size)
    (check (funcall describe (cffi:null-pointer) 0 count))
    (let ((length (cffi:mem-ref count :size)))
      (cffi:with-foreign-object (memory '(:struct c-parameter) (max 1 length))
        (check (funcall describe memory length count))
        (loop for index below length
              collect (cffi:with-foreign-slots
                          ((name mode type array-p callback-p)
                           (cffi:mem-aptr memory '(:struct c-parameter) index) (:struct c-parameter))
                        (make-parameter
                         :name name
                         :mode (ecase mode (1 :in) (2 :out) (3 :inout) (4 :work))
                         :type (first (aref *types* type))
                         :array-p array-p :callback-p callback-p)))))))

;;; Callbacks

(defstruct (callback (:constructor make-callback (pointer)) (:copier nil))
  "A function of this program that remote functions call while they run: see DEFINE-CALLBACK."
  (pointer (error "a callback has a function") :read-only t))

(defmacro define-callback (name parameters &body body)
  "Define the variable NAME as a CALLBACK with the PARAMETERS of the interface, a list of (VARIABLE TYPE).

TYPE is that of CFFI: :int, :double, :string, and :pointer for arrays, whose elements are
(cffi:mem-aref VARIABLE :double INDEX). It runs in a thread of the library, and must not signal errors."
  (let ((function (intern (format nil "%~a" name) *package*)))
    `(progn
       (cffi:defcallback ,function :void ,parameters ,@body (values))
       (defparameter ,name (make-callback (cffi:callback ,function))))))

;;; Arguments

(defvar *function* nil
  "Name of the function whose arguments are prepared, for errors.")

(defun refuse (parameter problem &rest arguments)
  (error 'argument-error :function *function* :parameter (and parameter (parameter-name parameter))
                         :problem (apply #'format nil problem arguments)))

(defun pushed (code)
  (unless (zerop code) (fail 18)))

(defun call-with-stack (parameters arguments body)
  "Call BODY with an argument stack, while arrays are pinned; then store strings that came back."
  (unless (= (length parameters) (length arguments))
    (refuse nil "it has ~d parameter~:p, but ~d ~:*~[are~;is~:;are~] given" (length parameters) (length arguments)))
  (let ((stack (grpc-arg-stack-new (length arguments))))
    (unwind-protect
         (labels ((add (parameters arguments)
                    (if (null parameters)
                        (funcall body stack)
                        (call-with-argument
                         stack (first parameters) (first arguments)
                         (lambda () (add (rest parameters) (rest arguments)))))))
           (add parameters arguments))
      (grpc-arg-stack-destruct stack))))

(defun call-with-argument (stack parameter argument next)
  "Push an argument, and call NEXT while it stays where it is."
  (flet ((add (pointer)
           (pushed (grpc-arg-stack-push-arg stack pointer))
           (funcall next)))
    (cond ((eq (parameter-mode parameter) :work) (add (cffi:null-pointer)))
          ((parameter-callback-p parameter)
           (unless (callback-p argument)
             (refuse parameter "is ~a, but has to be a callback" (described argument)))
           (add (callback-pointer argument)))
          ((textp parameter) (call-with-texts stack parameter argument next))
          ((parameter-array-p parameter) (call-with-array stack parameter argument next))
          (t (cffi:with-foreign-object (place :uint8 16)
               (store-number parameter argument place)
               (add place))))))

(defun described (argument)
  (if (null argument) "NIL" (format nil "of type ~(~a~)" (type-of argument))))

(defun store-number (parameter argument place)
  (let ((wanted (lisp-type parameter)) (c-type (c-type parameter)))
    (unless (numberp argument)
      (if (and (characterp argument) (member c-type '(:int8 :uint8)))
          (setf argument (char-code argument))
          (refuse parameter "is ~a, but has to be a number" (described argument))))
    (cond ((complexp-type parameter)
           (let ((number (coerce argument wanted)))
             (setf (cffi:mem-aref place c-type 0) (realpart number)
                   (cffi:mem-aref place c-type 1) (imagpart number))))
          ((member c-type '(:float :double))
           (unless (realp argument)
             (refuse parameter "is ~a, but has to be a real number" argument))
           (setf (cffi:mem-ref place c-type) (coerce argument wanted)))
          ((typep argument wanted) (setf (cffi:mem-ref place c-type) argument))
          ((integerp argument) (refuse parameter "is ~d, which does not fit in ~(~a~)" argument (parameter-type parameter)))
          (t (refuse parameter "is ~a, but has to be an integer" argument)))))

(defun call-with-array (stack parameter argument next)
  (let ((wanted (lisp-type parameter)))
    (unless (typep argument `(simple-array ,wanted))
      (refuse parameter "is ~a, but has to be a (simple-array ~(~a~))" (described argument) wanted))
    (let* ((vector (if (vectorp argument) argument (sb-ext:array-storage-vector argument)))
           (size (* (cffi:foreign-type-size (c-type parameter)) (if (complexp-type parameter) 2 1))))
      (declare (type (sb-kernel:simple-unboxed-array (*)) vector))
      (sb-sys:with-pinned-objects (vector)
        (pushed (grpc-arg-stack-push-array-np
                 stack (cffi:make-pointer (sb-sys:sap-int (sb-sys:vector-sap vector))) (* size (length vector))))
        (funcall next)))))

(defun call-with-texts (stack parameter argument next)
  (let ((returns (and (outputp parameter) (eq (parameter-type parameter) :string))))
    (if (or (parameter-array-p parameter) returns)
        (unless (and (vectorp argument) (not (stringp argument)))
          (refuse parameter "is ~a, but has to be a vector of strings" (described argument)))
        (unless (stringp argument)
          (refuse parameter "is ~a, but has to be a string" (described argument))))
    (cond ((stringp argument)
           (cffi:with-foreign-string (text argument)
             (pushed (grpc-arg-stack-push-arg stack text))
             (funcall next)))
          (t
           (unless (or (parameter-array-p parameter) (= (length argument) 1))
             (refuse parameter "has ~d elements, but has to have one: the string" (length argument)))
           (call-with-text-vector stack parameter argument returns next)))))

(defun call-with-text-vector (stack parameter argument returns next)
  (let* ((length (length argument))
         (size (cffi:foreign-type-size :pointer))
         (given (make-array length :initial-element (cffi:null-pointer))))
    (cffi:with-foreign-object (addresses :pointer (max 1 length))
      (unwind-protect
           (progn
             (dotimes (index length)
               (unless (and returns (eq (parameter-mode parameter) :out))
                 (unless (stringp (aref argument index))
                   (refuse parameter "has ~a at ~d, but has to have strings" (described (aref argument index)) index))
                 (setf (aref given index) (cffi:foreign-string-alloc (aref argument index))))
               (setf (cffi:mem-aref addresses :pointer index) (aref given index)))
             (pushed (if (parameter-array-p parameter)
                         (grpc-arg-stack-push-array-np stack addresses (* size length))
                         (grpc-arg-stack-push-arg stack addresses)))
             (multiple-value-prog1 (funcall next)
               (when returns (store-texts addresses given argument))))
        (map nil (lambda (text) (unless (cffi:null-pointer-p text) (cffi:foreign-string-free text))) given)))))

(defun store-texts (addresses given argument)
  "Store strings that came back. New ones are in memory of their own, which is freed."
  (dotimes (index (length argument))
    (let ((text (cffi:mem-aref addresses :pointer index)))
      (setf (aref argument index)
            (if (cffi:null-pointer-p text) nil (values (cffi:foreign-string-to-lisp text))))
      (unless (or (cffi:null-pointer-p text) (cffi:pointer-eq text (aref given index)))
        (cffi:foreign-funcall "free" :pointer text :void)))))
