;;;; Tests, with the module that the tests of the C library call (tests/capi/modules/cases.idl).

(defpackage #:ninf-tests
  (:use #:common-lisp)
  (:export #:run))

(in-package #:ninf-tests)

(defvar *tests* '())

(defmacro deftest (name &body body)
  `(progn (defun ,name () ,@body)
          (pushnew ',name *tests*)))

(defmacro is (form &rest values)
  "FORM, a call of a predicate, is true; VALUES are printed if it is not."
  `(unless ,form (error "not true: ~s~@[, with ~s~]" ',form (list ,@values))))

(defmacro signals (condition form)
  "The CONDITION that FORM signals; an error if it signals none."
  `(handler-case (progn ,form (error "~s signals nothing" ',form))
     (,condition (condition) condition)))

(defun doubles (&rest numbers)
  (map '(simple-array double-float (*)) (lambda (number) (coerce number 'double-float)) numbers))

(defun ints (length)
  (make-array length :element-type '(signed-byte 32) :initial-element 0))

(defun add (a b)
  (let ((sum (ints 1)))
    (ninf:call "cases/add" a b sum)
    (aref sum 0)))

(deftest arrays-go-in-and-come-back
  (let ((a (make-array '(2 2) :element-type 'double-float :initial-contents '((1d0 2d0) (3d0 4d0))))
        (c (make-array '(2 2) :element-type 'double-float :initial-element 0d0)))
    (ninf:call "cases/mmul" 2 a (doubles 0 1 1 0) c)
    (is (equalp c #2A((2d0 1d0) (4d0 3d0))) c)
    (is (equalp a #2A((1d0 2d0) (3d0 4d0))) a)))

(deftest large-arrays-are-scaled-in-place
  (let ((x (make-array 1000000 :element-type 'double-float :initial-element 2d0)))
    (ninf:call "cases/scale" 1000000 3 x)
    (is (every (lambda (number) (= number 6d0)) x))))

(deftest lengths-and-types-are-compared
  (let ((x (doubles 1 2 3)))
    (let ((condition (signals ninf:grid-error (ninf:call "cases/scale" 4 2 x))))
      (is (search "has 3 elements, but has to have 4" (ninf:grid-error-detail condition))))
    (dolist (wrong `((3 2) (1.5 2 ,x) (nil 2 ,x) (3 "2" ,x) (3 2 nil) (3 2 #(1d0 2d0 3d0)) (3 2 7)
                     (,(expt 2 63) 2 ,x)))
      (let ((condition (signals ninf:argument-error (apply #'ninf:call "cases/scale" wrong))))
        (is (search "cases/scale" (princ-to-string condition)) condition)))
    (is (equalp x (doubles 1 2 3)) x)))

(deftest texts-go-in-and-come-back
  (let ((text (vector nil)))
    (ninf:call "cases/greet" "Jürgen" text)
    (is (search "Jürgen" (aref text 0)) text)
    (setf (aref text 0) "abc")
    (ninf:call "cases/turn" text)
    (is (string= (aref text 0) "cba") text)
    (ninf:call "cases/join" 2 (vector "x" "yz") text)
    (is (and (search "x" (aref text 0)) (search "yz" (aref text 0))) text)
    (signals ninf:argument-error (ninf:call "cases/greet" "you" "no vector"))
    (signals ninf:grid-error (ninf:call "cases/join" 3 (vector "x" "yz") text))))

(deftest interfaces-are-described
  (let ((parameters (ninf:parameters (ninf:function-handle "cases/scale"))))
    (is (equal (mapcar #'ninf:parameter-name parameters) '("n" "by" "x")))
    (is (equal (mapcar #'ninf:parameter-mode parameters) '(:in :in :inout)))
    (is (equal (mapcar #'ninf:parameter-type parameters) '(:long :double :double)))
    (is (ninf:parameter-array-p (third parameters)))))

(deftest calls-run-at-once
  (let* ((sums (loop repeat 50 collect (ints 1)))
         (sessions (loop for sum in sums for number from 0
                         collect (ninf:call-async "cases/add" number 1 sum))))
    (mapc #'ninf:wait sessions)
    (is (every #'ninf:done-p sessions))
    (is (equal (mapcar (lambda (sum) (aref sum 0)) sums) (loop for number from 1 to 50 collect number)))))

(deftest arrays-stay-where-they-are
  (let* ((x (make-array 1000 :element-type 'double-float :initial-element 1d0))
         (session (ninf:call-async "cases/scale" 1000 5 x)))
    (loop repeat 5 do (make-array 1000000) (sb-ext:gc :full t))
    (ninf:wait session)
    (is (every (lambda (number) (= number 5d0)) x))))

(deftest calls-can-be-cancelled
  (let ((session (ninf:call-async "cases/nap" 60)))
    (is (not (ninf:done-p session)))
    (ninf:cancel session)
    (is (eq (ninf:grid-error-code (signals ninf:grid-error (ninf:wait session))) :canceled)))
  (handler-case (sb-ext:with-timeout 0.2 (ninf:call "cases/nap" 60))
    (sb-ext:timeout ()))
  (is (= (add 1 2) 3)))

(deftest errors-have-codes-and-details
  (let ((condition (signals ninf:grid-error (ninf:call "cases/segfault"))))
    (is (eq (ninf:grid-error-code condition) :communication-failed))
    (is (search "SIGSEGV" (ninf:grid-error-detail condition))))
  (is (eq (ninf:grid-error-code (signals ninf:grid-error (ninf:call "cases/unknown"))) :function-not-found))
  (is (eq (ninf:grid-error-code (signals ninf:grid-error (ninf:make-object "cases/Unknown"))) :class-not-found))
  (is (eq (ninf:grid-error-code (signals ninf:grid-error (ninf:function-handle "cases/add" :server "no.invalid")))
          :server-not-found))
  (is (eq (ninf:grid-error-code (signals ninf:grid-error (ninf:open-grid))) :already-initialized))
  (let ((function (ninf:function-handle "cases/add")))
    (ninf:close-function function)
    (is (eq (ninf:grid-error-code (signals ninf:grid-error (ninf:call function 1 2 (ints 1))))
            :invalid-function-handle))))

(deftest objects-keep-their-state
  (let ((now (ints 1)))
    (ninf:with-object (counter "cases/Counter")
      (ninf:invoke counter "add" 5 now)
      (mapc #'ninf:wait (loop repeat 10 collect (ninf:invoke-async counter "add" 1 (ints 1))))
      (ninf:invoke counter "get" now)
      (is (= (aref now 0) 115) now)
      (signals ninf:grid-error (ninf:invoke counter "subtract" 1))
      (signals ninf:grid-error (ninf:invoke counter "die")))))

(ninf:define-callback *square* ((x :pointer) (y :pointer))
  (setf (cffi:mem-aref y :double 0) (expt (cffi:mem-aref x :double 0) 2)))

(deftest functions-call-back
  (let ((sum (doubles 0)))
    (ninf:call "cases/integrate" 100 sum *square*)
    (is (< (abs (- (aref sum 0) 1/3)) 1d-4) sum)
    (signals ninf:argument-error (ninf:call "cases/integrate" 100 sum #'identity))))

(defun resident ()
  "Bytes of memory that this process has, after a garbage collection."
  (sb-ext:gc :full t)
  (with-open-file (sizes "/proc/self/statm")
    (read sizes)
    (* 4096 (read sizes))))

(deftest memory-of-many-calls-is-freed
  (let ((x (make-array 20000 :element-type 'double-float :initial-element 1d0))
        (name (make-string 100000 :initial-element #\a))
        (sum (doubles 0))
        (text (vector nil))
        (before 0))
    (dotimes (number 1200)
      (when (= number 200)
        (setf before (resident)))
      (let ((function (ninf:function-handle "cases/scale")))
        (ninf:call function 20000 1 x)
        (ninf:wait (ninf:call-async function 20000 1 x))
        (ninf:close-function function))
      (ninf:call "cases/greet" name text)
      (ninf:call "cases/integrate" 2 sum *square*))
    (is (= (aref x 0) 1d0) x)
    ;; A thousand calls have moved 520 MB in each direction.
    (let ((after (resident)))
      (is (< (- after before) 100000000) before after))))

(defun run ()
  "Run all tests; whether all have passed."
  (let ((failed 0) (names (reverse *tests*)))
    (ninf:with-grid ()
      (dolist (name names)
        (handler-case (funcall name)
          (error (condition)
            (incf failed)
            (format t "FAILED ~(~a~): ~a~%" name condition)))))
    (format t "~d passed, ~d failed~%" (- (length names) failed) failed)
    (zerop failed)))
