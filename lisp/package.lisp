;;;; The package NINF.

(defpackage #:ninf
  (:use #:common-lisp)
  (:documentation
   "Calls of C, C++, Fortran and Python functions on this machine, on servers and on clusters.

  (ninf:with-grid ()
    (ninf:call \"blas/ddot\" n x y result))

A call has one argument for each parameter of the interface, in its order:

  number             a number that fits
  array              an array whose elements have the type of the parameter's, such as
                     (simple-array double-float (*)) for double. It is pinned, and not copied.
                     NIL for memory that the function works with (WORK)
  string, file name  a string; for an output, a vector with one element, which gets the string
  array of strings   a vector of strings
  callback           a CALLBACK

Errors are conditions: ARGUMENT-ERROR before anything is sent, GRID-ERROR afterwards.")
  (:export
   ;; The grid
   #:open-grid #:close-grid #:with-grid
   ;; Functions
   #:call #:call-async #:wait #:done-p #:cancel #:session
   #:remote-function #:function-handle #:close-function #:parameters
   ;; Objects
   #:remote-object #:make-object #:close-object #:invoke #:invoke-async #:with-object
   ;; Parameters
   #:parameter #:parameter-name #:parameter-mode #:parameter-type #:parameter-array-p #:parameter-callback-p
   ;; Callbacks
   #:callback #:define-callback
   ;; Conditions
   #:grid-error #:grid-error-code #:grid-error-detail
   #:argument-error #:argument-error-function #:argument-error-parameter #:argument-error-problem))
