;;;; Systems: gridrpc, and gridrpc/tests.

(asdf:defsystem "gridrpc"
  :description "Calls C, C++, Fortran and Python functions on this machine, servers and clusters"
  :license "Apache-2.0"
  :version "0.1.0"
  :depends-on ("cffi")
  :serial t
  :components ((:file "package")
               (:file "library")
               (:file "arguments")
               (:file "calls"))
  :in-order-to ((asdf:test-op (asdf:test-op "gridrpc/tests"))))

(asdf:defsystem "gridrpc/tests"
  :description "Tests of gridrpc, with real workers"
  :license "Apache-2.0"
  :depends-on ("gridrpc")
  :components ((:file "tests"))
  :perform (asdf:test-op (operation system)
             (unless (uiop:symbol-call '#:ninf-tests '#:run)
               (error "tests of gridrpc failed"))))
