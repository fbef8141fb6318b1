;;;; Solves a dense linear system with LAPACK's dgesv: sbcl --script solve.lisp [N]

(require :asdf)
(asdf:load-asd (merge-pathnames "../../lisp/gridrpc.asd" *load-truename*))
(let ((*standard-output* (make-broadcast-stream)))  ; the first time, it compiles itself and CFFI
  (asdf:load-system "gridrpc"))

(defun vector-of-doubles (length)
  (make-array length :element-type 'double-float :initial-element 0d0))

(let* ((n (parse-integer (or (second sb-ext:*posix-argv*) "300")))
       ;; By columns, as in Fortran: a[column][row].
       (a (make-array (list n n) :element-type 'double-float))
       (x (vector-of-doubles n))
       (pivots (make-array n :element-type '(signed-byte 32)))
       (info (make-array 1 :element-type '(signed-byte 32))))
  ;; The solution is a vector of ones.
  (dotimes (column n)
    (dotimes (row n)
      (setf (aref a column row) (- (random 2d0) 1d0))
      (incf (aref x row) (aref a column row))))
  (ninf:with-grid ()
    (handler-case (ninf:call "lapack/dgesv" n 1 a n pivots x n info)
      (ninf:grid-error (condition)
        (format *error-output* "solve.lisp: ~a~%" condition)
        (sb-ext:exit :code 1))))
  (let ((error (reduce #'max (map 'vector (lambda (number) (abs (- number 1))) x))))
    (format t "~a~%" (cond ((plusp (aref info 0)) "the matrix is singular")
                           ((< error 1d-8) "solved")
                           (t (format nil "off by ~a" error))))))
