! The Fortran module `grpc`: the GridRPC API, as the standard (GFD-R.52) has it, with the extensions
! of Ninf-G. docs/fortran.md tells how to use it, and grpc.h what each function does.
!
!   use grpc
!   type(grpc_function_handle_t) :: handle
!   integer(grpc_error_t) :: error
!   error = grpc_initialize('client.conf')
!   error = grpc_function_handle_default(handle, 'sample/mmul')
!   error = grpc_call(handle, n, a, b, c)
!   error = grpc_finalize()
!
! Functions have the names that they have in C, and return grpc_error_t. What differs:
!
! - Strings are of any length; blanks at their end do not count.
! - Arrays know their sizes, so no numbers of elements are passed.
! - Where C takes NULL, an argument is optional.
! - What C stores for the caller to free, a variable or an allocatable takes. So there are no
!   functions that end in _release_np.
module grpc
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! ---- Codes -------------------------------------------------------------------------------------

  ! Kinds of integers: integer(grpc_error_t), integer(grpc_sessionid_t).
  integer, parameter, public :: grpc_error_t = c_int
  integer, parameter, public :: grpc_sessionid_t = c_int

  ! What functions return.
  integer(grpc_error_t), parameter, public :: &
    GRPC_NO_ERROR = 0, &
    GRPC_NOT_INITIALIZED = 1, &
    GRPC_ALREADY_INITIALIZED = 2, &
    GRPC_CONFIGFILE_NOT_FOUND = 3, &
    GRPC_CONFIGFILE_ERROR = 4, &
    GRPC_SERVER_NOT_FOUND = 5, &
    GRPC_FUNCTION_NOT_FOUND = 6, &
    GRPC_INVALID_FUNCTION_HANDLE = 7, &
    GRPC_INVALID_SESSION_ID = 8, &
    GRPC_RPC_REFUSED = 9, &
    GRPC_COMMUNICATION_FAILED = 10, &
    GRPC_SESSION_FAILED = 11, &
    GRPC_NOT_COMPLETED = 12, &
    GRPC_NONE_COMPLETED = 13, &
    GRPC_INVALID_OBJECT_HANDLE_NP = 14, &
    GRPC_CLASS_NOT_FOUND_NP = 15, &
    GRPC_TIMEOUT_NP = 16, &
    GRPC_CANCELED_NP = 17, &
    GRPC_OTHER_ERROR_CODE = 18, &
    GRPC_UNKNOWN_ERROR_CODE = 19, &
    GRPC_LAST_ERROR_CODE = 20

  ! No session.
  integer(grpc_sessionid_t), parameter, public :: GRPC_SESSIONID_VOID = -1

  ! Room for the id of a detached call.
  integer, parameter, public :: GRPC_DETACHED_ID_SIZE_NP = 512

  ! How a session is getting on.
  integer(c_int), parameter, public :: &
    GRPC_SESSION_DONE = 1, &
    GRPC_SESSION_ARG_IS_NOT_TRANSMITTED = 2, &
    GRPC_SESSION_ARG_IS_NOT_TRANSMITED = GRPC_SESSION_ARG_IS_NOT_TRANSMITTED, &
    GRPC_SESSION_EXECUTING = 3, &
    GRPC_SESSION_DOWN = 4, &
    GRPC_SESSION_UNKNOWN_STATUS = 5

  ! When a call that is not waited for returns: values of the attributes WAIT_ARG_TRANSFER.
  integer(c_int), parameter, public :: &
    GRPC_ARGUMENT_TRANSFER_UNDEFINED = 0, &
    GRPC_ARGUMENT_TRANSFER_WAIT = 1, &
    GRPC_ARGUMENT_TRANSFER_NOWAIT = 2, &
    GRPC_ARGUMENT_TRANSFER_COPY = 3

  ! Attributes of handles. HOSTNAME, JOBMANAGER, SUBJECT, FUNCNAME, QUEUENAME, MEMORY and RESOURCES
  ! are strings, the others integers.
  integer(c_int), parameter, public :: &
    GRPC_HANDLE_ATTR_HOSTNAME = 0, &
    GRPC_HANDLE_ATTR_PORT = 1, &
    GRPC_HANDLE_ATTR_JOBMANAGER = 2, &
    GRPC_HANDLE_ATTR_SUBJECT = 3, &
    GRPC_HANDLE_ATTR_FUNCNAME = 4, &
    GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT = 5, &
    GRPC_HANDLE_ATTR_JOBSTOPTIMEOUT = 6, &
    GRPC_HANDLE_ATTR_WAIT_ARG_TRANSFER = 7, &
    GRPC_HANDLE_ATTR_QUEUENAME = 8, &
    GRPC_HANDLE_ATTR_MPI_NCPUS = 9, &
    GRPC_HANDLE_ATTR_CORES = 10, &
    GRPC_HANDLE_ATTR_MEMORY = 11, &
    GRPC_HANDLE_ATTR_RESOURCES = 12, &
    GRPC_HANDLE_ATTR_EXPECTED_TIME = 13

  ! Attributes of sessions: integers.
  integer(c_int), parameter, public :: &
    GRPC_SESSION_ATTR_WAIT_ARG_TRANSFER = 0, &
    GRPC_SESSION_ATTR_SESSION_TIMEOUT = 1, &
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_ARGUMENT = 2, &
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_RESULT = 3, &
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_CALLBACK_ARGUMENT = 4, &
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_CALLBACK_RESULT = 5

  ! How a parameter goes.
  integer(c_int), parameter, public :: &
    GRPC_MODE_IN_NP = 1, &
    GRPC_MODE_OUT_NP = 2, &
    GRPC_MODE_INOUT_NP = 3, &
    GRPC_MODE_WORK_NP = 4

  ! What a parameter, or an element of it, is.
  integer(c_int), parameter, public :: &
    GRPC_TYPE_NONE_NP = 0, &
    GRPC_TYPE_CHAR_NP = 1, &
    GRPC_TYPE_UNSIGNED_CHAR_NP = 2, &
    GRPC_TYPE_SHORT_NP = 3, &
    GRPC_TYPE_UNSIGNED_SHORT_NP = 4, &
    GRPC_TYPE_INT_NP = 5, &
    GRPC_TYPE_UNSIGNED_INT_NP = 6, &
    GRPC_TYPE_LONG_NP = 7, &
    GRPC_TYPE_UNSIGNED_LONG_NP = 8, &
    GRPC_TYPE_LONG_LONG_NP = 9, &
    GRPC_TYPE_UNSIGNED_LONG_LONG_NP = 10, &
    GRPC_TYPE_FLOAT_NP = 11, &
    GRPC_TYPE_DOUBLE_NP = 12, &
    GRPC_TYPE_SCOMPLEX_NP = 13, &
    GRPC_TYPE_DCOMPLEX_NP = 14, &
    GRPC_TYPE_INT8_NP = 15, &
    GRPC_TYPE_UINT8_NP = 16, &
    GRPC_TYPE_INT16_NP = 17, &
    GRPC_TYPE_UINT16_NP = 18, &
    GRPC_TYPE_INT32_NP = 19, &
    GRPC_TYPE_UINT32_NP = 20, &
    GRPC_TYPE_INT64_NP = 21, &
    GRPC_TYPE_UINT64_NP = 22, &
    GRPC_TYPE_STRING_NP = 23, &
    GRPC_TYPE_FILENAME_NP = 24

  ! ---- Handles -----------------------------------------------------------------------------------

  ! Handles and attributes hold numbers, never addresses. All copies stand for the same thing. One
  ! that was never made is all 0, which the library recognises.

  type, bind(c), public :: grpc_function_handle_t
    private
    integer(c_int64_t) :: gridrpc_private(4) = 0
  end type

  type, bind(c), public :: grpc_object_handle_t_np
    private
    integer(c_int64_t) :: gridrpc_private(4) = 0
  end type

  type, bind(c), public :: grpc_handle_attr_t_np
    private
    integer(c_int64_t) :: gridrpc_private(4) = 0
  end type

  type, bind(c), public :: grpc_session_attr_t_np
    private
    integer(c_int64_t) :: gridrpc_private(4) = 0
  end type

  ! One parameter of an interface.
  type, public :: grpc_parameter_np
    character(len=:), allocatable :: name
    integer(c_int) :: mode = 0              ! GRPC_MODE_...
    integer(c_int) :: type = 0              ! GRPC_TYPE_...
    logical :: is_array = .false.
    logical :: is_callback = .false.
  end type

  ! ---- Session information -----------------------------------------------------------------------

  ! All times are in seconds; those that were not measured are 0.

  ! What the worker measured.
  type, public :: grpc_exec_info_executable_t_np
    integer :: callbackNtimesCalled = 0
    real(c_double) :: transferArgumentToRemoteRealTime = 0
    real(c_double) :: transferArgumentToRemoteCpuTime = 0
    real(c_double) :: transferFileToRemoteRealTime = 0
    real(c_double) :: transferFileToRemoteCpuTime = 0
    real(c_double) :: calculationRealTime = 0
    real(c_double) :: calculationCpuTime = 0
    real(c_double) :: transferResultToClientRealTime = 0
    real(c_double) :: transferResultToClientCpuTime = 0
    real(c_double) :: transferFileToClientRealTime = 0
    real(c_double) :: transferFileToClientCpuTime = 0
    real(c_double) :: callbackTransferArgumentToClientRealTime = 0
    real(c_double) :: callbackTransferArgumentToClientCpuTime = 0
    real(c_double) :: callbackCalculationRealTime = 0
    real(c_double) :: callbackCalculationCpuTime = 0
    real(c_double) :: callbackTransferResultToRemoteRealTime = 0
    real(c_double) :: callbackTransferResultToRemoteCpuTime = 0
  end type

  ! What this process measured.
  type, public :: grpc_exec_info_client_t_np
    integer :: callbackNtimesCalled = 0
    real(c_double) :: remoteMachineInfoRequestRealTime = 0
    real(c_double) :: remoteMachineInfoRequestCpuTime = 0
    real(c_double) :: remoteClassInfoRequestRealTime = 0
    real(c_double) :: remoteClassInfoRequestCpuTime = 0
    real(c_double) :: gramInvokeRealTime = 0
    real(c_double) :: gramInvokeCpuTime = 0
    real(c_double) :: transferArgumentToRemoteRealTime = 0
    real(c_double) :: transferArgumentToRemoteCpuTime = 0
    real(c_double) :: calculationRealTime = 0
    real(c_double) :: calculationCpuTime = 0
    real(c_double) :: transferResultToClientRealTime = 0
    real(c_double) :: transferResultToClientCpuTime = 0
    real(c_double) :: callbackTransferArgumentToClientRealTime = 0
    real(c_double) :: callbackTransferArgumentToClientCpuTime = 0
    real(c_double) :: callbackCalculationRealTime = 0
    real(c_double) :: callbackCalculationCpuTime = 0
    real(c_double) :: callbackTransferResultToRemoteRealTime = 0
    real(c_double) :: callbackTransferResultToRemoteCpuTime = 0
    real(c_double) :: waitForWorkerRealTime = 0
  end type

  ! What compressing one argument brought.
  type, public :: grpc_compression_info_t_np
    logical :: valid = .false.
    integer(c_int64_t) :: originalNbytes = 0
    integer(c_int64_t) :: compressionNbytes = 0
    real(c_double) :: compressionRealTime = 0
    real(c_double) :: compressionCpuTime = 0
    real(c_double) :: decompressionRealTime = 0
    real(c_double) :: decompressionCpuTime = 0
  end type

  ! One element for each argument, or none.
  type, public :: grpc_compression_information_np
    type(grpc_compression_info_t_np), allocatable :: toRemote(:)
    type(grpc_compression_info_t_np), allocatable :: toClient(:)
  end type

  ! How much was moved, and where the session ran.
  type, public :: grpc_session_place_t_np
    integer(c_int64_t) :: argumentNbytes = 0
    integer(c_int64_t) :: resultNbytes = 0
    integer(c_int64_t) :: callbackArgumentNbytes = 0
    integer(c_int64_t) :: callbackResultNbytes = 0
    integer :: workerNumber = -1
    integer :: attempts = 0
    integer(c_long) :: processId = 0
    character(len=:), allocatable :: hostname
  end type

  type, public :: grpc_session_info_t_np
    type(grpc_exec_info_executable_t_np) :: gei_measureExecutable
    type(grpc_exec_info_client_t_np) :: gei_measureClient
    type(grpc_compression_information_np) :: gei_compressionInformation
    type(grpc_session_place_t_np) :: gei_place
  end type

  ! How the library has the same.

  type, bind(c) :: c_timeval
    integer(c_long) :: seconds, microseconds
  end type

  type, bind(c) :: c_compression_info
    integer(c_int) :: valid
    integer(c_size_t) :: original, compressed
    type(c_timeval) :: times(4)
  end type

  type, bind(c) :: c_session_info
    integer(c_int) :: executable_callbacks
    type(c_timeval) :: executable(16)
    integer(c_int) :: client_callbacks
    type(c_timeval) :: client(19)
    integer(c_int) :: elements
    type(c_ptr) :: to_remote, to_client
    integer(c_int64_t) :: bytes(4)
    integer(c_int) :: worker, attempts
    integer(c_long) :: process
    character(kind=c_char) :: host(256)
  end type

  type, bind(c) :: c_parameter
    type(c_ptr) :: name
    integer(c_int) :: mode, type, is_array, is_callback
  end type

  ! ---- Functions ---------------------------------------------------------------------------------

  public :: grpc_arg_stack_destruct, grpc_arg_stack_new, grpc_arg_stack_pop_arg, &
    grpc_arg_stack_push_arg, grpc_arg_stack_push_array_np, grpc_attach_arg_stack_np, grpc_call, grpc_call_arg_stack, &
    grpc_call_arg_stack_async, &
    grpc_call_arg_stack_async_with_attr_np, grpc_call_arg_stack_with_attr_np, &
    grpc_call_argstack_async, grpc_call_async, grpc_call_async_with_attr_np, &
    grpc_call_with_attr_np, grpc_cancel, grpc_cancel_all, grpc_config_file_read_np, &
    grpc_detach_arg_stack_np, grpc_detach_session_np, grpc_error_detail_np, grpc_error_string, &
    grpc_finalize, grpc_free_np, &
    grpc_function_handle_array_default_np, grpc_function_handle_array_destruct_np, &
    grpc_function_handle_array_init_np, grpc_function_handle_array_init_with_attr_np, &
    grpc_function_handle_default, grpc_function_handle_destruct, &
    grpc_function_handle_get_attr_np, grpc_function_handle_get_error_np, &
    grpc_function_handle_get_from_session_np, grpc_function_handle_init, &
    grpc_function_handle_init_with_attr_np, grpc_function_handle_is_ready_np, &
    grpc_function_handle_perror_np, grpc_function_parameters_np, grpc_get_error, &
    grpc_get_failed_sessionid, grpc_get_handle, grpc_get_info_np, grpc_get_last_info_np, &
    grpc_handle_attr_destruct_np, grpc_handle_attr_get_np, grpc_handle_attr_initialize_np, &
    grpc_handle_attr_set_np, grpc_initialize, grpc_invoke_arg_stack_async_np, &
    grpc_invoke_arg_stack_async_with_attr_np, grpc_invoke_arg_stack_np, &
    grpc_invoke_arg_stack_with_attr_np, grpc_invoke_argstack_async_np, grpc_invoke_async_np, &
    grpc_invoke_async_with_attr_np, grpc_invoke_np, grpc_invoke_with_attr_np, &
    grpc_is_canceled_np, grpc_last_error_get_np, grpc_malloc_np, grpc_method_parameters_np, &
    grpc_object_handle_array_default_np, grpc_object_handle_array_destruct_np, &
    grpc_object_handle_array_init_np, grpc_object_handle_array_init_with_attr_np, &
    grpc_object_handle_default_np, grpc_object_handle_destruct_np, &
    grpc_object_handle_get_attr_np, grpc_object_handle_get_error_np, &
    grpc_object_handle_get_from_session_np, grpc_object_handle_init_np, &
    grpc_object_handle_init_with_attr_np, grpc_object_handle_is_ready_np, &
    grpc_object_handle_perror_np, grpc_perror_np, grpc_probe, grpc_probe_or, &
    grpc_session_attr_destruct_np, grpc_session_attr_get_np, grpc_session_attr_initialize_np, &
    grpc_session_attr_initialize_with_object_handle_np, grpc_session_attr_set_np, &
    grpc_session_info_get_np, grpc_session_info_remove_np, grpc_session_info_set_threshold_np, &
    grpc_signal_handler_set_np, grpc_wait, grpc_wait_all, grpc_wait_and, grpc_wait_any, &
    grpc_wait_or

  ! Sets an attribute to a string or an integer; without a value, takes it away.
  interface grpc_handle_attr_set_np
    procedure handle_attr_set_text, handle_attr_set_integer, handle_attr_set_nothing
  end interface

  ! Stores an attribute, with an empty string or 0 if there is none; is_set, which is optional,
  ! tells whether there is one.
  interface grpc_handle_attr_get_np
    procedure handle_attr_get_text, handle_attr_get_integer
  end interface

  ! Calls. The interface of the remote function says what each argument has to be. Numbers may be of
  ! any kind; arrays have to be contiguous and of the parameter's type; strings come back into
  ! character variables, but only from calls that are waited for; callbacks are type(c_funptr).
  interface
    ! Calls the function and waits for its end.
    function grpc_call(handle, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, &
        a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_call')
      import :: grpc_function_handle_t, grpc_error_t
      type(grpc_function_handle_t), intent(in) :: handle
      type(*), dimension(..), optional :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, &
        a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, &
        a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! Begins a call. Its results are in their places when it has been waited for.
    function grpc_call_async(handle, session_id, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, &
        a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, &
        a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_call_async')
      import :: grpc_function_handle_t, grpc_error_t, grpc_sessionid_t
      type(grpc_function_handle_t), intent(in) :: handle
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(*), dimension(..), optional, asynchronous :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, &
        a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, &
        a28, a29, a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! grpc_call with session attributes.
    function grpc_call_with_attr_np(handle, attr, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, &
        a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, &
        a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_call_with_attr')
      import :: grpc_function_handle_t, grpc_error_t, grpc_session_attr_t_np
      type(grpc_function_handle_t), intent(in) :: handle
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(*), dimension(..), optional :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, &
        a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, &
        a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! grpc_call_async with session attributes.
    function grpc_call_async_with_attr_np(handle, session_id, attr, a1, a2, a3, a4, a5, a6, a7, &
        a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, &
        a26, a27, a28, a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_call_async_with_attr')
      import :: grpc_function_handle_t, grpc_error_t, grpc_sessionid_t, grpc_session_attr_t_np
      type(grpc_function_handle_t), intent(in) :: handle
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(*), dimension(..), optional, asynchronous :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, &
        a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, &
        a28, a29, a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! Calls a method of an object and waits for its end.
    function grpc_invoke_np(handle, method_name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, &
        a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, &
        a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_invoke')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(len=*, kind=c_char), intent(in) :: method_name
      type(*), dimension(..), optional :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, &
        a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, &
        a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! Begins a call of a method. An object's methods run one after the other.
    function grpc_invoke_async_np(handle, method_name, session_id, a1, a2, a3, a4, a5, a6, a7, &
        a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, &
        a26, a27, a28, a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_invoke_async')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, grpc_sessionid_t
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(len=*, kind=c_char), intent(in) :: method_name
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(*), dimension(..), optional, asynchronous :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, &
        a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, &
        a28, a29, a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! grpc_invoke_np with session attributes.
    function grpc_invoke_with_attr_np(handle, method_name, attr, a1, a2, a3, a4, a5, a6, a7, a8, &
        a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, &
        a27, a28, a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_invoke_with_attr')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, grpc_session_attr_t_np
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(len=*, kind=c_char), intent(in) :: method_name
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(*), dimension(..), optional :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, &
        a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, &
        a30, a31, a32
      integer(grpc_error_t) :: error
    end function

    ! grpc_invoke_async_np with session attributes.
    function grpc_invoke_async_with_attr_np(handle, method_name, session_id, attr, a1, a2, a3, &
        a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, &
        a23, a24, a25, a26, a27, a28, a29, a30, a31, a32) &
        result(error) bind(c, name='gridrpc_f_invoke_async_with_attr')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, grpc_sessionid_t, &
        grpc_session_attr_t_np
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(len=*, kind=c_char), intent(in) :: method_name
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(*), dimension(..), optional, asynchronous :: a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, &
        a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, &
        a28, a29, a30, a31, a32
      integer(grpc_error_t) :: error
    end function
  end interface

  ! Functions that are in Fortran what they are in C.
  interface
    ! Beginning and end

    ! Ends everything: sessions, workers, handles.
    function grpc_finalize() result(error) bind(c, name='grpc_finalize')
      import :: grpc_error_t
      integer(grpc_error_t) :: error
    end function

    ! Function handles

    ! Makes a handle with everything given as attributes.
    function grpc_function_handle_init_with_attr_np(handle, attr) result(error) &
        bind(c, name='grpc_function_handle_init_with_attr_np')
      import :: grpc_function_handle_t, grpc_handle_attr_t_np, grpc_error_t
      type(grpc_function_handle_t), intent(out) :: handle
      type(grpc_handle_attr_t_np), intent(in) :: attr
      integer(grpc_error_t) :: error
    end function

    ! Gives the handle up, and cancels its sessions that still run.
    function grpc_function_handle_destruct(handle) result(error) &
        bind(c, name='grpc_function_handle_destruct')
      import :: grpc_function_handle_t, grpc_error_t
      type(grpc_function_handle_t), intent(inout) :: handle
      integer(grpc_error_t) :: error
    end function

    ! Makes attributes with the values that the handle has.
    function grpc_function_handle_get_attr_np(handle, attr) result(error) &
        bind(c, name='grpc_function_handle_get_attr_np')
      import :: grpc_function_handle_t, grpc_handle_attr_t_np, grpc_error_t
      type(grpc_function_handle_t), intent(in) :: handle
      type(grpc_handle_attr_t_np), intent(out) :: attr
      integer(grpc_error_t) :: error
    end function

    ! The last error of a call with this handle.
    function grpc_function_handle_get_error_np(handle) result(error) &
        bind(c, name='grpc_function_handle_get_error_np')
      import :: grpc_function_handle_t, grpc_error_t
      type(grpc_function_handle_t), intent(in) :: handle
      integer(grpc_error_t) :: error
    end function

    ! GRPC_NO_ERROR when there is a worker for it.
    function grpc_function_handle_is_ready_np(handle) result(error) &
        bind(c, name='grpc_function_handle_is_ready_np')
      import :: grpc_function_handle_t, grpc_error_t
      type(grpc_function_handle_t), intent(in) :: handle
      integer(grpc_error_t) :: error
    end function

    ! Object handles

    ! Starts an object with everything given as attributes.
    function grpc_object_handle_init_with_attr_np(handle, attr) result(error) &
        bind(c, name='grpc_object_handle_init_with_attr_np')
      import :: grpc_object_handle_t_np, grpc_handle_attr_t_np, grpc_error_t
      type(grpc_object_handle_t_np), intent(out) :: handle
      type(grpc_handle_attr_t_np), intent(in) :: attr
      integer(grpc_error_t) :: error
    end function

    ! Ends the object and its worker.
    function grpc_object_handle_destruct_np(handle) result(error) &
        bind(c, name='grpc_object_handle_destruct_np')
      import :: grpc_object_handle_t_np, grpc_error_t
      type(grpc_object_handle_t_np), intent(inout) :: handle
      integer(grpc_error_t) :: error
    end function

    ! Makes attributes with the values that the handle has.
    function grpc_object_handle_get_attr_np(handle, attr) result(error) &
        bind(c, name='grpc_object_handle_get_attr_np')
      import :: grpc_object_handle_t_np, grpc_handle_attr_t_np, grpc_error_t
      type(grpc_object_handle_t_np), intent(in) :: handle
      type(grpc_handle_attr_t_np), intent(out) :: attr
      integer(grpc_error_t) :: error
    end function

    ! The last error of this object.
    function grpc_object_handle_get_error_np(handle) result(error) &
        bind(c, name='grpc_object_handle_get_error_np')
      import :: grpc_object_handle_t_np, grpc_error_t
      type(grpc_object_handle_t_np), intent(in) :: handle
      integer(grpc_error_t) :: error
    end function

    ! GRPC_NO_ERROR when the object's worker is up.
    function grpc_object_handle_is_ready_np(handle) result(error) &
        bind(c, name='grpc_object_handle_is_ready_np')
      import :: grpc_object_handle_t_np, grpc_error_t
      type(grpc_object_handle_t_np), intent(in) :: handle
      integer(grpc_error_t) :: error
    end function

    ! Attributes

    ! Makes attributes without any value.
    function grpc_handle_attr_initialize_np(attr) result(error) &
        bind(c, name='grpc_handle_attr_initialize_np')
      import :: grpc_handle_attr_t_np, grpc_error_t
      type(grpc_handle_attr_t_np), intent(out) :: attr
      integer(grpc_error_t) :: error
    end function

    ! Gives the attributes up.
    function grpc_handle_attr_destruct_np(attr) result(error) &
        bind(c, name='grpc_handle_attr_destruct_np')
      import :: grpc_handle_attr_t_np, grpc_error_t
      type(grpc_handle_attr_t_np), intent(inout) :: attr
      integer(grpc_error_t) :: error
    end function

    ! Makes attributes with the values that sessions of this handle have by themselves.
    function grpc_session_attr_initialize_np(handle, attr) result(error) &
        bind(c, name='grpc_session_attr_initialize_np')
      import :: grpc_function_handle_t, grpc_session_attr_t_np, grpc_error_t
      type(grpc_function_handle_t), intent(in) :: handle
      type(grpc_session_attr_t_np), intent(out) :: attr
      integer(grpc_error_t) :: error
    end function

    ! The same for an object's handle.
    function grpc_session_attr_initialize_with_object_handle_np(handle, attr) result(error) &
        bind(c, name='grpc_session_attr_initialize_with_object_handle_np')
      import :: grpc_object_handle_t_np, grpc_session_attr_t_np, grpc_error_t
      type(grpc_object_handle_t_np), intent(in) :: handle
      type(grpc_session_attr_t_np), intent(out) :: attr
      integer(grpc_error_t) :: error
    end function

    ! Gives the attributes up.
    function grpc_session_attr_destruct_np(attr) result(error) &
        bind(c, name='grpc_session_attr_destruct_np')
      import :: grpc_session_attr_t_np, grpc_error_t
      type(grpc_session_attr_t_np), intent(inout) :: attr
      integer(grpc_error_t) :: error
    end function

    ! Argument stacks: addresses, from c_loc and c_funloc, and strings that end in c_null_char

    ! Makes a stack.
    function grpc_arg_stack_new(max_args) result(address) bind(c, name='grpc_arg_stack_new')
      import :: c_int, c_ptr
      integer(c_int), value :: max_args
      type(c_ptr) :: address
    end function

    ! Adds an argument. Returns 0, or -1 if the stack is full.
    function grpc_arg_stack_push_arg(stack, argument) result(answer) &
        bind(c, name='grpc_arg_stack_push_arg')
      import :: c_int, c_ptr
      type(c_ptr), value :: stack
      type(c_ptr), value :: argument
      integer(c_int) :: answer
    end function

    ! Adds an array with its length in bytes, which calls check. Returns 0, or -1 if the stack is full.
    function grpc_arg_stack_push_array_np(stack, array, nbytes) result(answer) &
        bind(c, name='grpc_arg_stack_push_array_np')
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: stack
      type(c_ptr), value :: array
      integer(c_size_t), value :: nbytes
      integer(c_int) :: answer
    end function

    ! Takes the argument added last away.
    function grpc_arg_stack_pop_arg(stack) result(address) bind(c, name='grpc_arg_stack_pop_arg')
      import :: c_ptr
      type(c_ptr), value :: stack
      type(c_ptr) :: address
    end function

    ! Frees the stack.
    function grpc_arg_stack_destruct(stack) result(answer) bind(c, name='grpc_arg_stack_destruct')
      import :: c_int, c_ptr
      type(c_ptr), value :: stack
      integer(c_int) :: answer
    end function

    ! grpc_call with a stack.
    function grpc_call_arg_stack(handle, stack) result(error) bind(c, name='grpc_call_arg_stack')
      import :: grpc_function_handle_t, grpc_error_t, c_ptr
      type(grpc_function_handle_t), intent(in) :: handle
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    ! Begins a call with a stack. Returns its session.
    function grpc_call_arg_stack_async(handle, stack) result(session_id) &
        bind(c, name='grpc_call_arg_stack_async')
      import :: grpc_function_handle_t, grpc_sessionid_t, c_ptr
      type(grpc_function_handle_t), intent(in) :: handle
      type(c_ptr), value :: stack
      integer(grpc_sessionid_t) :: session_id
    end function

    ! The same with the session stored.
    function grpc_call_argstack_async(handle, session_id, stack) result(error) &
        bind(c, name='grpc_call_argstack_async')
      import :: grpc_function_handle_t, grpc_error_t, grpc_sessionid_t, c_ptr
      type(grpc_function_handle_t), intent(in) :: handle
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    ! grpc_call_arg_stack with session attributes.
    function grpc_call_arg_stack_with_attr_np(handle, attr, stack) result(error) &
        bind(c, name='grpc_call_arg_stack_with_attr_np')
      import :: grpc_function_handle_t, grpc_session_attr_t_np, grpc_error_t, c_ptr
      type(grpc_function_handle_t), intent(in) :: handle
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    ! grpc_call_arg_stack_async with session attributes.
    function grpc_call_arg_stack_async_with_attr_np(handle, attr, stack) result(session_id) &
        bind(c, name='grpc_call_arg_stack_async_with_attr_np')
      import :: grpc_function_handle_t, grpc_session_attr_t_np, grpc_sessionid_t, c_ptr
      type(grpc_function_handle_t), intent(in) :: handle
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(c_ptr), value :: stack
      integer(grpc_sessionid_t) :: session_id
    end function

    ! Has the server of a handle run a call even if this program ends. Stores the call's id, which
    ! ends in c_null_char.
    function grpc_detach_arg_stack_np(handle, id, size, stack) result(error) &
        bind(c, name='grpc_detach_arg_stack_np')
      import :: grpc_function_handle_t, grpc_error_t, c_char, c_ptr, c_size_t
      type(grpc_function_handle_t), intent(in) :: handle
      character(kind=c_char), intent(out) :: id(*)
      integer(c_size_t), value :: size
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    ! Has the server of a session continue with its call even if this program ends, and stores the
    ! call's id. The session ends with the result of the detached call.
    function grpc_detach_session_np(session_id, id, size) result(error) &
        bind(c, name='grpc_detach_session_np')
      import :: grpc_sessionid_t, grpc_error_t, c_char, c_size_t
      integer(grpc_sessionid_t), value :: session_id
      character(kind=c_char), intent(out) :: id(*)
      integer(c_size_t), value :: size
      integer(grpc_error_t) :: error
    end function

    ! Attaches to a detached call, with the arguments of that call, and stores a session.
    function grpc_attach_arg_stack_np(handle, id, session_id, stack) result(error) &
        bind(c, name='grpc_attach_arg_stack_np')
      import :: grpc_function_handle_t, grpc_sessionid_t, grpc_error_t, c_char, c_ptr
      type(grpc_function_handle_t), intent(in) :: handle
      character(kind=c_char), intent(in) :: id(*)
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    ! Sessions

    ! Asks a session to end, and does not wait for that.
    function grpc_cancel(session_id) result(error) bind(c, name='grpc_cancel')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    ! Cancels all sessions that run.
    function grpc_cancel_all() result(error) bind(c, name='grpc_cancel_all')
      import :: grpc_error_t
      integer(grpc_error_t) :: error
    end function

    ! GRPC_NO_ERROR if the session has ended, GRPC_NOT_COMPLETED if it runs.
    function grpc_probe(session_id) result(error) bind(c, name='grpc_probe')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    ! Waits for a session.
    function grpc_wait(session_id) result(error) bind(c, name='grpc_wait')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    ! Waits for all sessions that were not waited for.
    function grpc_wait_all() result(error) bind(c, name='grpc_wait_all')
      import :: grpc_error_t
      integer(grpc_error_t) :: error
    end function

    ! Waits for any session that was not waited for.
    function grpc_wait_any(done_id) result(error) bind(c, name='grpc_wait_any')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), intent(out) :: done_id
      integer(grpc_error_t) :: error
    end function

    ! What the session ended with.
    function grpc_get_error(session_id) result(error) bind(c, name='grpc_get_error')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    ! Stores one after the other the sessions for which a wait failed.
    function grpc_get_failed_sessionid(session_id) result(error) &
        bind(c, name='grpc_get_failed_sessionid')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), intent(out) :: session_id
      integer(grpc_error_t) :: error
    end function

    ! The last error of a function of this library in this thread.
    function grpc_last_error_get_np() result(error) bind(c, name='grpc_last_error_get_np')
      import :: grpc_error_t
      integer(grpc_error_t) :: error
    end function

    ! Forgets a session that has ended.
    function grpc_session_info_remove_np(session_id) result(error) &
        bind(c, name='grpc_session_info_remove_np')
      import :: grpc_error_t, grpc_sessionid_t
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    ! How many sessions that have ended are kept.
    function grpc_session_info_set_threshold_np(threshold) result(error) &
        bind(c, name='grpc_session_info_set_threshold_np')
      import :: grpc_error_t, c_int
      integer(c_int), value :: threshold
      integer(grpc_error_t) :: error
    end function

    ! Others

    ! Sets what happens at a signal: a procedure with bind(c) and one integer(c_int), value.
    function grpc_signal_handler_set_np(signal_number, signal_handler) result(error) &
        bind(c, name='grpc_signal_handler_set_np')
      import :: grpc_error_t, c_int, c_funptr
      integer(c_int), value :: signal_number
      type(c_funptr), value :: signal_handler
      integer(grpc_error_t) :: error
    end function

    ! In a remote function: 1 if the call has been cancelled.
    function grpc_is_canceled_np(error) result(canceled) bind(c, name='grpc_is_canceled_np')
      import :: grpc_error_t, c_int
      integer(grpc_error_t), intent(out), optional :: error
      integer(c_int) :: canceled
    end function

    ! Memory for arrays that calls need not copy: make a pointer of it with c_f_pointer.
    function grpc_malloc_np(nbytes) result(address) bind(c, name='grpc_malloc_np')
      import :: c_size_t, c_ptr
      integer(c_size_t), value :: nbytes
      type(c_ptr) :: address
    end function

    ! Frees it.
    function grpc_free_np(memory) result(error) bind(c, name='grpc_free_np')
      import :: grpc_error_t, c_ptr
      type(c_ptr), value :: memory
      integer(grpc_error_t) :: error
    end function
  end interface

  ! What the procedures below call.
  interface
    function c_refuse(problem) result(error) bind(c, name='gridrpc_fortran_refuse')
      import :: grpc_error_t, c_char
      character(kind=c_char), intent(in) :: problem(*)
      integer(grpc_error_t) :: error
    end function

    function c_initialize(file_name) result(error) bind(c, name='grpc_initialize')
      import :: grpc_error_t, c_char
      character(kind=c_char), intent(in) :: file_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_config_file_read_np(file_name) result(error) bind(c, name='grpc_config_file_read_np')
      import :: grpc_error_t, c_char
      character(kind=c_char), intent(in) :: file_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_default(handle, func_name) result(error) &
        bind(c, name='grpc_function_handle_default')
      import :: grpc_function_handle_t, grpc_error_t, c_char
      type(grpc_function_handle_t), intent(out) :: handle
      character(kind=c_char), intent(in) :: func_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_init(handle, server_name, func_name) result(error) &
        bind(c, name='grpc_function_handle_init')
      import :: grpc_function_handle_t, grpc_error_t, c_char
      type(grpc_function_handle_t), intent(out) :: handle
      character(kind=c_char), intent(in) :: server_name(*)
      character(kind=c_char), intent(in) :: func_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_array_default_np(handles, n, func_name) result(error) &
        bind(c, name='grpc_function_handle_array_default_np')
      import :: grpc_function_handle_t, grpc_error_t, c_char, c_size_t
      type(grpc_function_handle_t), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      character(kind=c_char), intent(in) :: func_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_array_init_np(handles, n, server_name, func_name) result(error) &
        bind(c, name='grpc_function_handle_array_init_np')
      import :: grpc_function_handle_t, grpc_error_t, c_char, c_size_t
      type(grpc_function_handle_t), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      character(kind=c_char), intent(in) :: server_name(*)
      character(kind=c_char), intent(in) :: func_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_array_init_with_attr_np(handles, n, attr) result(error) &
        bind(c, name='grpc_function_handle_array_init_with_attr_np')
      import :: grpc_function_handle_t, grpc_handle_attr_t_np, grpc_error_t, c_size_t
      type(grpc_function_handle_t), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      type(grpc_handle_attr_t_np), intent(in) :: attr
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_array_destruct_np(handles, n) result(error) &
        bind(c, name='grpc_function_handle_array_destruct_np')
      import :: grpc_function_handle_t, grpc_error_t, c_size_t
      type(grpc_function_handle_t), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      integer(grpc_error_t) :: error
    end function

    function c_get_handle(handle, session_id) result(error) bind(c, name='grpc_get_handle')
      import :: grpc_error_t, grpc_sessionid_t, c_ptr
      type(c_ptr), intent(out) :: handle
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    function c_function_handle_perror_np(handle, text) result(error) &
        bind(c, name='grpc_function_handle_perror_np')
      import :: grpc_function_handle_t, grpc_error_t, c_char
      type(grpc_function_handle_t), intent(in) :: handle
      character(kind=c_char), intent(in) :: text(*)
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_default_np(handle, class_name) result(error) &
        bind(c, name='grpc_object_handle_default_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char
      type(grpc_object_handle_t_np), intent(out) :: handle
      character(kind=c_char), intent(in) :: class_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_init_np(handle, server_name, class_name) result(error) &
        bind(c, name='grpc_object_handle_init_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char
      type(grpc_object_handle_t_np), intent(out) :: handle
      character(kind=c_char), intent(in) :: server_name(*)
      character(kind=c_char), intent(in) :: class_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_array_default_np(handles, n, class_name) result(error) &
        bind(c, name='grpc_object_handle_array_default_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, c_size_t
      type(grpc_object_handle_t_np), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      character(kind=c_char), intent(in) :: class_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_array_init_np(handles, n, server_name, class_name) result(error) &
        bind(c, name='grpc_object_handle_array_init_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, c_size_t
      type(grpc_object_handle_t_np), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      character(kind=c_char), intent(in) :: server_name(*)
      character(kind=c_char), intent(in) :: class_name(*)
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_array_init_with_attr_np(handles, n, attr) result(error) &
        bind(c, name='grpc_object_handle_array_init_with_attr_np')
      import :: grpc_object_handle_t_np, grpc_handle_attr_t_np, grpc_error_t, c_size_t
      type(grpc_object_handle_t_np), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      type(grpc_handle_attr_t_np), intent(in) :: attr
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_array_destruct_np(handles, n) result(error) &
        bind(c, name='grpc_object_handle_array_destruct_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_size_t
      type(grpc_object_handle_t_np), intent(inout) :: handles(*)
      integer(c_size_t), value :: n
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_get_from_session_np(handle, session_id) result(error) &
        bind(c, name='grpc_object_handle_get_from_session_np')
      import :: grpc_error_t, grpc_sessionid_t, c_ptr
      type(c_ptr), intent(out) :: handle
      integer(grpc_sessionid_t), value :: session_id
      integer(grpc_error_t) :: error
    end function

    function c_object_handle_perror_np(handle, text) result(error) &
        bind(c, name='grpc_object_handle_perror_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: text(*)
      integer(grpc_error_t) :: error
    end function

    function c_handle_attr_get_np(attr, name, address) result(error) &
        bind(c, name='grpc_handle_attr_get_np')
      import :: grpc_handle_attr_t_np, grpc_error_t, c_int, c_ptr
      type(grpc_handle_attr_t_np), intent(in) :: attr
      integer(c_int), value :: name
      type(c_ptr), intent(out) :: address
      integer(grpc_error_t) :: error
    end function

    function c_handle_attr_set_np(attr, name, address) result(error) &
        bind(c, name='grpc_handle_attr_set_np')
      import :: grpc_handle_attr_t_np, grpc_error_t, c_int, c_ptr
      type(grpc_handle_attr_t_np), intent(inout) :: attr
      integer(c_int), value :: name
      type(c_ptr), value :: address
      integer(grpc_error_t) :: error
    end function

    function c_handle_attr_release_np(address) result(error) &
        bind(c, name='grpc_handle_attr_release_np')
      import :: grpc_error_t, c_ptr
      type(c_ptr), value :: address
      integer(grpc_error_t) :: error
    end function

    function c_session_attr_get_np(attr, name, address) result(error) &
        bind(c, name='grpc_session_attr_get_np')
      import :: grpc_session_attr_t_np, grpc_error_t, c_int, c_ptr
      type(grpc_session_attr_t_np), intent(in) :: attr
      integer(c_int), value :: name
      type(c_ptr), intent(out) :: address
      integer(grpc_error_t) :: error
    end function

    function c_session_attr_set_np(attr, name, address) result(error) &
        bind(c, name='grpc_session_attr_set_np')
      import :: grpc_session_attr_t_np, grpc_error_t, c_int, c_ptr
      type(grpc_session_attr_t_np), intent(inout) :: attr
      integer(c_int), value :: name
      type(c_ptr), value :: address
      integer(grpc_error_t) :: error
    end function

    function c_session_attr_release_np(address) result(error) &
        bind(c, name='grpc_session_attr_release_np')
      import :: grpc_error_t, c_ptr
      type(c_ptr), value :: address
      integer(grpc_error_t) :: error
    end function

    function c_invoke_arg_stack_np(handle, method_name, stack) result(error) &
        bind(c, name='grpc_invoke_arg_stack_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, c_ptr
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: method_name(*)
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    function c_invoke_arg_stack_async_np(handle, method_name, stack) result(session_id) &
        bind(c, name='grpc_invoke_arg_stack_async_np')
      import :: grpc_object_handle_t_np, grpc_sessionid_t, c_char, c_ptr
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: method_name(*)
      type(c_ptr), value :: stack
      integer(grpc_sessionid_t) :: session_id
    end function

    function c_invoke_argstack_async_np(handle, method_name, session_id, stack) result(error) &
        bind(c, name='grpc_invoke_argstack_async_np')
      import :: grpc_object_handle_t_np, grpc_error_t, grpc_sessionid_t, c_char, c_ptr
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: method_name(*)
      integer(grpc_sessionid_t), intent(out) :: session_id
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    function c_invoke_arg_stack_with_attr_np(handle, method_name, attr, stack) result(error) &
        bind(c, name='grpc_invoke_arg_stack_with_attr_np')
      import :: grpc_object_handle_t_np, grpc_session_attr_t_np, grpc_error_t, c_char, c_ptr
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: method_name(*)
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(c_ptr), value :: stack
      integer(grpc_error_t) :: error
    end function

    function c_invoke_arg_stack_async_with_attr_np(handle, method_name, attr, stack) &
        result(session_id) bind(c, name='grpc_invoke_arg_stack_async_with_attr_np')
      import :: grpc_object_handle_t_np, grpc_session_attr_t_np, grpc_sessionid_t, c_char, c_ptr
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: method_name(*)
      type(grpc_session_attr_t_np), intent(in) :: attr
      type(c_ptr), value :: stack
      integer(grpc_sessionid_t) :: session_id
    end function

    function c_probe_or(session_ids, n, done_id) result(error) bind(c, name='grpc_probe_or')
      import :: grpc_error_t, grpc_sessionid_t, c_size_t
      integer(grpc_sessionid_t), intent(in) :: session_ids(*)
      integer(c_size_t), value :: n
      integer(grpc_sessionid_t), intent(out) :: done_id
      integer(grpc_error_t) :: error
    end function

    function c_wait_and(session_ids, n) result(error) bind(c, name='grpc_wait_and')
      import :: grpc_error_t, grpc_sessionid_t, c_size_t
      integer(grpc_sessionid_t), intent(in) :: session_ids(*)
      integer(c_size_t), value :: n
      integer(grpc_error_t) :: error
    end function

    function c_wait_or(session_ids, n, done_id) result(error) bind(c, name='grpc_wait_or')
      import :: grpc_error_t, grpc_sessionid_t, c_size_t
      integer(grpc_sessionid_t), intent(in) :: session_ids(*)
      integer(c_size_t), value :: n
      integer(grpc_sessionid_t), intent(out) :: done_id
      integer(grpc_error_t) :: error
    end function

    function c_error_string(error_code) result(address) bind(c, name='grpc_error_string')
      import :: grpc_error_t, c_ptr
      integer(grpc_error_t), value :: error_code
      type(c_ptr) :: address
    end function

    function c_error_detail_np(session_id) result(address) bind(c, name='grpc_error_detail_np')
      import :: grpc_sessionid_t, c_ptr
      integer(grpc_sessionid_t), value :: session_id
      type(c_ptr) :: address
    end function

    function c_perror_np(text) result(error) bind(c, name='grpc_perror_np')
      import :: grpc_error_t, c_char
      character(kind=c_char), intent(in) :: text(*)
      integer(grpc_error_t) :: error
    end function

    function c_session_info_get_np(session_id, info, status) result(error) &
        bind(c, name='grpc_session_info_get_np')
      import :: grpc_error_t, grpc_sessionid_t, c_int, c_ptr
      integer(grpc_sessionid_t), value :: session_id
      type(c_ptr), intent(out) :: info
      integer(c_int), intent(out) :: status
      integer(grpc_error_t) :: error
    end function

    function c_session_info_release_np(info) result(error) &
        bind(c, name='grpc_session_info_release_np')
      import :: grpc_error_t, c_ptr
      type(c_ptr), value :: info
      integer(grpc_error_t) :: error
    end function

    function c_get_info_np(session_id, info, status) result(error) bind(c, name='grpc_get_info_np')
      import :: grpc_error_t, grpc_sessionid_t, c_int, c_session_info
      integer(grpc_sessionid_t), value :: session_id
      type(c_session_info), intent(out) :: info
      integer(c_int), intent(out) :: status
      integer(grpc_error_t) :: error
    end function

    function c_get_last_info_np(info, status) result(error) bind(c, name='grpc_get_last_info_np')
      import :: grpc_error_t, c_int, c_session_info
      type(c_session_info), intent(out) :: info
      integer(c_int), intent(out) :: status
      integer(grpc_error_t) :: error
    end function

    function c_function_parameters_np(handle, parameters, capacity, count) result(error) &
        bind(c, name='grpc_function_parameters_np')
      import :: grpc_function_handle_t, grpc_error_t, c_size_t, c_parameter
      type(grpc_function_handle_t), intent(in) :: handle
      type(c_parameter), intent(inout) :: parameters(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(grpc_error_t) :: error
    end function

    function c_method_parameters_np(handle, method_name, parameters, capacity, count) &
        result(error) bind(c, name='grpc_method_parameters_np')
      import :: grpc_object_handle_t_np, grpc_error_t, c_char, c_size_t, c_parameter
      type(grpc_object_handle_t_np), intent(in) :: handle
      character(kind=c_char), intent(in) :: method_name(*)
      type(c_parameter), intent(inout) :: parameters(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(grpc_error_t) :: error
    end function
  end interface

contains

  ! ---- Strings -----------------------------------------------------------------------------------

  ! A Fortran string as C has it.
  pure function to_c(text) result(copy)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: copy
    copy = trim(text) // c_null_char
  end function

  ! A text of C's as Fortran has it; empty for NULL.
  function from_c(address) result(text)
    type(c_ptr), intent(in) :: address
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer(c_size_t) :: length
    interface
      function strlen(text) result(length) bind(c, name='strlen')
        import :: c_ptr, c_size_t
        type(c_ptr), value :: text
        integer(c_size_t) :: length
      end function
    end interface
    if (.not. c_associated(address)) then
      text = ''
      return
    end if
    length = strlen(address)
    call c_f_pointer(address, letters, [length])
    text = joined(letters)
  end function

  pure function joined(letters) result(text)
    character(kind=c_char), intent(in) :: letters(:)
    character(len=size(letters)) :: text
    integer :: i
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  ! ---- Beginning and end -------------------------------------------------------------------------

  ! Reads the configuration and opens the grid. Without a name, or with an empty one: the file that
  ! $NG_CONFIG_FILE names, or else $HOME/.ngconf, or else what is built in.
  function grpc_initialize(config_file_name) result(error)
    character(len=*), intent(in), optional :: config_file_name
    integer(grpc_error_t) :: error
    if (present(config_file_name)) then
      error = c_initialize(to_c(config_file_name))
    else
      error = c_initialize(to_c(''))
    end if
  end function

  ! Reads the configuration again.
  function grpc_config_file_read_np(config_file_name) result(error)
    character(len=*), intent(in), optional :: config_file_name
    integer(grpc_error_t) :: error
    if (present(config_file_name)) then
      error = c_config_file_read_np(to_c(config_file_name))
    else
      error = c_config_file_read_np(to_c(''))
    end if
  end function

  ! ---- Function handles --------------------------------------------------------------------------

  ! Makes a handle of a function, "module/function", on the default server.
  function grpc_function_handle_default(handle, func_name) result(error)
    type(grpc_function_handle_t), intent(out) :: handle
    character(len=*), intent(in) :: func_name
    integer(grpc_error_t) :: error
    error = c_function_handle_default(handle, to_c(func_name))
  end function

  ! The same on a given server.
  function grpc_function_handle_init(handle, server_name, func_name) result(error)
    type(grpc_function_handle_t), intent(out) :: handle
    character(len=*), intent(in) :: server_name, func_name
    integer(grpc_error_t) :: error
    error = c_function_handle_init(handle, to_c(server_name), to_c(func_name))
  end function

  ! Makes as many handles as the array has elements, all or none.
  function grpc_function_handle_array_default_np(handles, func_name) result(error)
    type(grpc_function_handle_t), intent(out) :: handles(:)
    character(len=*), intent(in) :: func_name
    integer(grpc_error_t) :: error
    error = c_function_handle_array_default_np(handles, size(handles, kind=c_size_t), &
      to_c(func_name))
  end function

  ! The same on a given server.
  function grpc_function_handle_array_init_np(handles, server_name, func_name) result(error)
    type(grpc_function_handle_t), intent(out) :: handles(:)
    character(len=*), intent(in) :: server_name, func_name
    integer(grpc_error_t) :: error
    error = c_function_handle_array_init_np(handles, size(handles, kind=c_size_t), &
      to_c(server_name), to_c(func_name))
  end function

  ! The same with everything given as attributes.
  function grpc_function_handle_array_init_with_attr_np(handles, attr) result(error)
    type(grpc_function_handle_t), intent(out) :: handles(:)
    type(grpc_handle_attr_t_np), intent(in) :: attr
    integer(grpc_error_t) :: error
    error = c_function_handle_array_init_with_attr_np(handles, size(handles, kind=c_size_t), attr)
  end function

  ! Gives all of them up.
  function grpc_function_handle_array_destruct_np(handles) result(error)
    type(grpc_function_handle_t), intent(inout) :: handles(:)
    integer(grpc_error_t) :: error
    error = c_function_handle_array_destruct_np(handles, size(handles, kind=c_size_t))
  end function

  ! Stores the handle that a session was begun with: a copy, which stands for the same.
  function grpc_get_handle(handle, session_id) result(error)
    type(grpc_function_handle_t), intent(out) :: handle
    integer(grpc_sessionid_t), intent(in) :: session_id
    integer(grpc_error_t) :: error
    type(c_ptr) :: address
    type(grpc_function_handle_t), pointer :: original
    error = c_get_handle(address, session_id)
    if (error == GRPC_NO_ERROR) then
      call c_f_pointer(address, original)
      handle = original
    end if
  end function

  ! The same under its Ninf-G name.
  function grpc_function_handle_get_from_session_np(handle, session_id) result(error)
    type(grpc_function_handle_t), intent(out) :: handle
    integer(grpc_sessionid_t), intent(in) :: session_id
    integer(grpc_error_t) :: error
    error = grpc_get_handle(handle, session_id)
  end function

  ! Prints "TEXT: the last error of the handle" to standard error.
  function grpc_function_handle_perror_np(handle, text) result(error)
    type(grpc_function_handle_t), intent(in) :: handle
    character(len=*), intent(in) :: text
    integer(grpc_error_t) :: error
    error = c_function_handle_perror_np(handle, to_c(text))
  end function

  ! Stores the parameters of a function, in their order.
  function grpc_function_parameters_np(handle, parameters) result(error)
    type(grpc_function_handle_t), intent(in) :: handle
    type(grpc_parameter_np), allocatable, intent(out) :: parameters(:)
    integer(grpc_error_t) :: error
    type(c_parameter), allocatable :: found(:)
    integer(c_size_t) :: count
    count = 0
    allocate(found(0))
    error = c_function_parameters_np(handle, found, 0_c_size_t, count)
    if (error /= GRPC_NO_ERROR) return
    deallocate(found)
    allocate(found(count))
    error = c_function_parameters_np(handle, found, size(found, kind=c_size_t), count)
    if (error == GRPC_NO_ERROR) call take_parameters(found, parameters)
  end function

  subroutine take_parameters(found, parameters)
    type(c_parameter), intent(in) :: found(:)
    type(grpc_parameter_np), allocatable, intent(out) :: parameters(:)
    integer :: i
    allocate(parameters(size(found)))
    do i = 1, size(found)
      parameters(i)%name = from_c(found(i)%name)
      parameters(i)%mode = found(i)%mode
      parameters(i)%type = found(i)%type
      parameters(i)%is_array = found(i)%is_array /= 0
      parameters(i)%is_callback = found(i)%is_callback /= 0
    end do
  end subroutine

  ! ---- Object handles ----------------------------------------------------------------------------

  ! Starts a worker with an object of a class, "module/class", on the default server.
  function grpc_object_handle_default_np(handle, class_name) result(error)
    type(grpc_object_handle_t_np), intent(out) :: handle
    character(len=*), intent(in) :: class_name
    integer(grpc_error_t) :: error
    error = c_object_handle_default_np(handle, to_c(class_name))
  end function

  ! The same on a given server.
  function grpc_object_handle_init_np(handle, server_name, class_name) result(error)
    type(grpc_object_handle_t_np), intent(out) :: handle
    character(len=*), intent(in) :: server_name, class_name
    integer(grpc_error_t) :: error
    error = c_object_handle_init_np(handle, to_c(server_name), to_c(class_name))
  end function

  ! Starts as many objects as the array has elements, all or none.
  function grpc_object_handle_array_default_np(handles, class_name) result(error)
    type(grpc_object_handle_t_np), intent(out) :: handles(:)
    character(len=*), intent(in) :: class_name
    integer(grpc_error_t) :: error
    error = c_object_handle_array_default_np(handles, size(handles, kind=c_size_t), &
      to_c(class_name))
  end function

  ! The same on a given server.
  function grpc_object_handle_array_init_np(handles, server_name, class_name) result(error)
    type(grpc_object_handle_t_np), intent(out) :: handles(:)
    character(len=*), intent(in) :: server_name, class_name
    integer(grpc_error_t) :: error
    error = c_object_handle_array_init_np(handles, size(handles, kind=c_size_t), &
      to_c(server_name), to_c(class_name))
  end function

  ! The same with everything given as attributes.
  function grpc_object_handle_array_init_with_attr_np(handles, attr) result(error)
    type(grpc_object_handle_t_np), intent(out) :: handles(:)
    type(grpc_handle_attr_t_np), intent(in) :: attr
    integer(grpc_error_t) :: error
    error = c_object_handle_array_init_with_attr_np(handles, size(handles, kind=c_size_t), attr)
  end function

  ! Ends all of them.
  function grpc_object_handle_array_destruct_np(handles) result(error)
    type(grpc_object_handle_t_np), intent(inout) :: handles(:)
    integer(grpc_error_t) :: error
    error = c_object_handle_array_destruct_np(handles, size(handles, kind=c_size_t))
  end function

  ! Stores the handle that a session was begun with: a copy, which stands for the same.
  function grpc_object_handle_get_from_session_np(handle, session_id) result(error)
    type(grpc_object_handle_t_np), intent(out) :: handle
    integer(grpc_sessionid_t), intent(in) :: session_id
    integer(grpc_error_t) :: error
    type(c_ptr) :: address
    type(grpc_object_handle_t_np), pointer :: original
    error = c_object_handle_get_from_session_np(address, session_id)
    if (error == GRPC_NO_ERROR) then
      call c_f_pointer(address, original)
      handle = original
    end if
  end function

  ! Prints "TEXT: the last error of the object" to standard error.
  function grpc_object_handle_perror_np(handle, text) result(error)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: text
    integer(grpc_error_t) :: error
    error = c_object_handle_perror_np(handle, to_c(text))
  end function

  ! Stores the parameters of a method, in their order.
  function grpc_method_parameters_np(handle, method_name, parameters) result(error)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: method_name
    type(grpc_parameter_np), allocatable, intent(out) :: parameters(:)
    integer(grpc_error_t) :: error
    type(c_parameter), allocatable :: found(:)
    integer(c_size_t) :: count
    count = 0
    allocate(found(0))
    error = c_method_parameters_np(handle, to_c(method_name), found, 0_c_size_t, count)
    if (error /= GRPC_NO_ERROR) return
    deallocate(found)
    allocate(found(count))
    error = c_method_parameters_np(handle, to_c(method_name), found, &
      size(found, kind=c_size_t), count)
    if (error == GRPC_NO_ERROR) call take_parameters(found, parameters)
  end function

  ! ---- Attributes --------------------------------------------------------------------------------

  pure function is_text(name) result(answer)
    integer(c_int), intent(in) :: name
    logical :: answer
    answer = any(name == [GRPC_HANDLE_ATTR_HOSTNAME, GRPC_HANDLE_ATTR_JOBMANAGER, &
      GRPC_HANDLE_ATTR_SUBJECT, GRPC_HANDLE_ATTR_FUNCNAME, GRPC_HANDLE_ATTR_QUEUENAME, &
      GRPC_HANDLE_ATTR_MEMORY, GRPC_HANDLE_ATTR_RESOURCES])
  end function

  ! The library cannot tell what is behind an address, so the wrong type has to be found here.
  function refuse_attr(name) result(error)
    integer(c_int), intent(in) :: name
    integer(grpc_error_t) :: error
    character(len=12) :: number
    character(len=:), allocatable :: problem
    write(number, '(i0)') name
    if (is_text(name)) then
      problem = ' is a string, but an integer is given'
    else
      problem = ' is an integer, but a string is given'
    end if
    error = c_refuse(to_c('attribute ' // trim(number) // problem))
  end function

  function handle_attr_set_text(attr, name, value) result(error)
    type(grpc_handle_attr_t_np), intent(inout) :: attr
    integer(c_int), intent(in) :: name
    character(len=*), intent(in) :: value
    integer(grpc_error_t) :: error
    character(kind=c_char, len=:), allocatable, target :: copy
    if (.not. is_text(name)) then
      error = refuse_attr(name)
      return
    end if
    copy = to_c(value)
    error = c_handle_attr_set_np(attr, name, c_loc(copy))
  end function

  function handle_attr_set_integer(attr, name, value) result(error)
    type(grpc_handle_attr_t_np), intent(inout) :: attr
    integer(c_int), intent(in) :: name
    integer(c_int), intent(in), target :: value
    integer(grpc_error_t) :: error
    if (is_text(name)) then
      error = refuse_attr(name)
      return
    end if
    error = c_handle_attr_set_np(attr, name, c_loc(value))
  end function

  function handle_attr_set_nothing(attr, name) result(error)
    type(grpc_handle_attr_t_np), intent(inout) :: attr
    integer(c_int), intent(in) :: name
    integer(grpc_error_t) :: error
    error = c_handle_attr_set_np(attr, name, c_null_ptr)
  end function

  function handle_attr_get_text(attr, name, value, is_set) result(error)
    type(grpc_handle_attr_t_np), intent(in) :: attr
    integer(c_int), intent(in) :: name
    character(len=:), allocatable, intent(out) :: value
    logical, intent(out), optional :: is_set
    integer(grpc_error_t) :: error
    type(c_ptr) :: address
    value = ''
    if (present(is_set)) is_set = .false.
    if (.not. is_text(name)) then
      error = refuse_attr(name)
      return
    end if
    error = c_handle_attr_get_np(attr, name, address)
    if (error /= GRPC_NO_ERROR) return
    if (.not. c_associated(address)) return
    value = from_c(address)
    if (present(is_set)) is_set = .true.
    error = c_handle_attr_release_np(address)
  end function

  function handle_attr_get_integer(attr, name, value, is_set) result(error)
    type(grpc_handle_attr_t_np), intent(in) :: attr
    integer(c_int), intent(in) :: name
    integer(c_int), intent(out) :: value
    logical, intent(out), optional :: is_set
    integer(grpc_error_t) :: error
    type(c_ptr) :: address
    integer(c_int), pointer :: stored
    value = 0
    if (present(is_set)) is_set = .false.
    if (is_text(name)) then
      error = refuse_attr(name)
      return
    end if
    error = c_handle_attr_get_np(attr, name, address)
    if (error /= GRPC_NO_ERROR) return
    if (.not. c_associated(address)) return
    call c_f_pointer(address, stored)
    value = stored
    if (present(is_set)) is_set = .true.
    error = c_handle_attr_release_np(address)
  end function

  ! Sets an attribute of sessions.
  function grpc_session_attr_set_np(attr, name, value) result(error)
    type(grpc_session_attr_t_np), intent(inout) :: attr
    integer(c_int), intent(in) :: name
    integer(c_int), intent(in), target :: value
    integer(grpc_error_t) :: error
    error = c_session_attr_set_np(attr, name, c_loc(value))
  end function

  ! Stores an attribute of sessions; 0 if there is none.
  function grpc_session_attr_get_np(attr, name, value) result(error)
    type(grpc_session_attr_t_np), intent(in) :: attr
    integer(c_int), intent(in) :: name
    integer(c_int), intent(out) :: value
    integer(grpc_error_t) :: error
    type(c_ptr) :: address
    integer(c_int), pointer :: stored
    value = 0
    error = c_session_attr_get_np(attr, name, address)
    if (error /= GRPC_NO_ERROR) return
    if (.not. c_associated(address)) return
    call c_f_pointer(address, stored)
    value = stored
    error = c_session_attr_release_np(address)
  end function

  ! ---- Argument stacks of methods ----------------------------------------------------------------

  ! grpc_invoke_np with a stack.
  function grpc_invoke_arg_stack_np(handle, method_name, stack) result(error)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: method_name
    type(c_ptr), intent(in) :: stack
    integer(grpc_error_t) :: error
    error = c_invoke_arg_stack_np(handle, to_c(method_name), stack)
  end function

  ! Begins a call of a method with a stack. Returns its session, or GRPC_SESSIONID_VOID.
  function grpc_invoke_arg_stack_async_np(handle, method_name, stack) result(session_id)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: method_name
    type(c_ptr), intent(in) :: stack
    integer(grpc_sessionid_t) :: session_id
    session_id = c_invoke_arg_stack_async_np(handle, to_c(method_name), stack)
  end function

  ! The same with the session stored.
  function grpc_invoke_argstack_async_np(handle, method_name, session_id, stack) result(error)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: method_name
    integer(grpc_sessionid_t), intent(out) :: session_id
    type(c_ptr), intent(in) :: stack
    integer(grpc_error_t) :: error
    error = c_invoke_argstack_async_np(handle, to_c(method_name), session_id, stack)
  end function

  ! grpc_invoke_arg_stack_np with session attributes.
  function grpc_invoke_arg_stack_with_attr_np(handle, method_name, attr, stack) result(error)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: method_name
    type(grpc_session_attr_t_np), intent(in) :: attr
    type(c_ptr), intent(in) :: stack
    integer(grpc_error_t) :: error
    error = c_invoke_arg_stack_with_attr_np(handle, to_c(method_name), attr, stack)
  end function

  ! grpc_invoke_arg_stack_async_np with session attributes.
  function grpc_invoke_arg_stack_async_with_attr_np(handle, method_name, attr, stack) &
      result(session_id)
    type(grpc_object_handle_t_np), intent(in) :: handle
    character(len=*), intent(in) :: method_name
    type(grpc_session_attr_t_np), intent(in) :: attr
    type(c_ptr), intent(in) :: stack
    integer(grpc_sessionid_t) :: session_id
    session_id = c_invoke_arg_stack_async_with_attr_np(handle, to_c(method_name), attr, stack)
  end function

  ! ---- Sessions ----------------------------------------------------------------------------------

  ! Stores one of several sessions that has ended, or returns GRPC_NONE_COMPLETED.
  function grpc_probe_or(session_ids, done_id) result(error)
    integer(grpc_sessionid_t), intent(in) :: session_ids(:)
    integer(grpc_sessionid_t), intent(out) :: done_id
    integer(grpc_error_t) :: error
    error = c_probe_or(session_ids, size(session_ids, kind=c_size_t), done_id)
  end function

  ! Waits for all of several sessions.
  function grpc_wait_and(session_ids) result(error)
    integer(grpc_sessionid_t), intent(in) :: session_ids(:)
    integer(grpc_error_t) :: error
    error = c_wait_and(session_ids, size(session_ids, kind=c_size_t))
  end function

  ! Waits until one of several sessions has ended, and stores which.
  function grpc_wait_or(session_ids, done_id) result(error)
    integer(grpc_sessionid_t), intent(in) :: session_ids(:)
    integer(grpc_sessionid_t), intent(out) :: done_id
    integer(grpc_error_t) :: error
    error = c_wait_or(session_ids, size(session_ids, kind=c_size_t), done_id)
  end function

  ! ---- Errors ------------------------------------------------------------------------------------

  ! A text for a code.
  function grpc_error_string(error_code) result(text)
    integer(grpc_error_t), intent(in) :: error_code
    character(len=:), allocatable :: text
    text = from_c(c_error_string(error_code))
  end function

  ! All that is known about how a session failed. Without one: about the last error of this thread.
  function grpc_error_detail_np(session_id) result(text)
    integer(grpc_sessionid_t), intent(in), optional :: session_id
    character(len=:), allocatable :: text
    integer(grpc_sessionid_t) :: which
    which = GRPC_SESSIONID_VOID
    if (present(session_id)) which = session_id
    text = from_c(c_error_detail_np(which))
  end function

  ! Prints "TEXT: the last error of this thread" with its detail to standard error.
  function grpc_perror_np(text) result(error)
    character(len=*), intent(in) :: text
    integer(grpc_error_t) :: error
    error = c_perror_np(to_c(text))
  end function

  ! ---- Session information -----------------------------------------------------------------------

  ! Stores a session's information and its status.
  function grpc_session_info_get_np(session_id, info, status) result(error)
    integer(grpc_sessionid_t), intent(in) :: session_id
    type(grpc_session_info_t_np), intent(out), optional :: info
    integer(c_int), intent(out), optional :: status
    integer(grpc_error_t) :: error
    type(c_ptr) :: address
    type(c_session_info), pointer :: stored
    integer(c_int) :: state
    error = c_session_info_get_np(session_id, address, state)
    if (present(status)) status = state
    if (error /= GRPC_NO_ERROR) return
    if (present(info)) then
      call c_f_pointer(address, stored)
      call take_info(stored, info)
    end if
    error = c_session_info_release_np(address)
  end function

  ! Older: the same.
  function grpc_get_info_np(session_id, info, status) result(error)
    integer(grpc_sessionid_t), intent(in) :: session_id
    type(grpc_session_info_t_np), intent(out) :: info
    integer(c_int), intent(out), optional :: status
    integer(grpc_error_t) :: error
    type(c_session_info) :: stored
    integer(c_int) :: state
    error = c_get_info_np(session_id, stored, state)
    if (present(status)) status = state
    if (error == GRPC_NO_ERROR) call take_info(stored, info)
  end function

  ! Older: the same for the session that ended last.
  function grpc_get_last_info_np(info, status) result(error)
    type(grpc_session_info_t_np), intent(out) :: info
    integer(c_int), intent(out), optional :: status
    integer(grpc_error_t) :: error
    type(c_session_info) :: stored
    integer(c_int) :: state
    error = c_get_last_info_np(stored, state)
    if (present(status)) status = state
    if (error == GRPC_NO_ERROR) call take_info(stored, info)
  end function

  elemental function seconds(time) result(value)
    type(c_timeval), intent(in) :: time
    real(c_double) :: value
    value = real(time%seconds, c_double) + real(time%microseconds, c_double) / 1e6_c_double
  end function

  subroutine take_info(from, info)
    type(c_session_info), intent(in) :: from
    type(grpc_session_info_t_np), intent(inout) :: info
    integer :: length
    call take_executable(from%executable_callbacks, seconds(from%executable), &
      info%gei_measureExecutable)
    call take_client(from%client_callbacks, seconds(from%client), info%gei_measureClient)
    associate (compression => info%gei_compressionInformation)
      call take_compression(from%to_remote, from%elements, compression%toRemote)
      call take_compression(from%to_client, from%elements, compression%toClient)
    end associate
    associate (place => info%gei_place)
      place%argumentNbytes = from%bytes(1)
      place%resultNbytes = from%bytes(2)
      place%callbackArgumentNbytes = from%bytes(3)
      place%callbackResultNbytes = from%bytes(4)
      place%workerNumber = from%worker
      place%attempts = from%attempts
      place%processId = from%process
      length = findloc(from%host, c_null_char, dim=1) - 1
      if (length < 0) length = size(from%host)
      place%hostname = joined(from%host(:length))
    end associate
  end subroutine

  subroutine take_executable(callbacks, times, info)
    integer(c_int), intent(in) :: callbacks
    real(c_double), intent(in) :: times(:)
    type(grpc_exec_info_executable_t_np), intent(inout) :: info
    info%callbackNtimesCalled = callbacks
    info%transferArgumentToRemoteRealTime = times(1)
    info%transferArgumentToRemoteCpuTime = times(2)
    info%transferFileToRemoteRealTime = times(3)
    info%transferFileToRemoteCpuTime = times(4)
    info%calculationRealTime = times(5)
    info%calculationCpuTime = times(6)
    info%transferResultToClientRealTime = times(7)
    info%transferResultToClientCpuTime = times(8)
    info%transferFileToClientRealTime = times(9)
    info%transferFileToClientCpuTime = times(10)
    info%callbackTransferArgumentToClientRealTime = times(11)
    info%callbackTransferArgumentToClientCpuTime = times(12)
    info%callbackCalculationRealTime = times(13)
    info%callbackCalculationCpuTime = times(14)
    info%callbackTransferResultToRemoteRealTime = times(15)
    info%callbackTransferResultToRemoteCpuTime = times(16)
  end subroutine

  subroutine take_client(callbacks, times, info)
    integer(c_int), intent(in) :: callbacks
    real(c_double), intent(in) :: times(:)
    type(grpc_exec_info_client_t_np), intent(inout) :: info
    info%callbackNtimesCalled = callbacks
    info%remoteMachineInfoRequestRealTime = times(1)
    info%remoteMachineInfoRequestCpuTime = times(2)
    info%remoteClassInfoRequestRealTime = times(3)
    info%remoteClassInfoRequestCpuTime = times(4)
    info%gramInvokeRealTime = times(5)
    info%gramInvokeCpuTime = times(6)
    info%transferArgumentToRemoteRealTime = times(7)
    info%transferArgumentToRemoteCpuTime = times(8)
    info%calculationRealTime = times(9)
    info%calculationCpuTime = times(10)
    info%transferResultToClientRealTime = times(11)
    info%transferResultToClientCpuTime = times(12)
    info%callbackTransferArgumentToClientRealTime = times(13)
    info%callbackTransferArgumentToClientCpuTime = times(14)
    info%callbackCalculationRealTime = times(15)
    info%callbackCalculationCpuTime = times(16)
    info%callbackTransferResultToRemoteRealTime = times(17)
    info%callbackTransferResultToRemoteCpuTime = times(18)
    info%waitForWorkerRealTime = times(19)
  end subroutine

  subroutine take_compression(address, count, list)
    type(c_ptr), intent(in) :: address
    integer(c_int), intent(in) :: count
    type(grpc_compression_info_t_np), allocatable, intent(out) :: list(:)
    type(c_compression_info), pointer :: stored(:)
    real(c_double) :: times(4)
    integer :: i
    if (count <= 0 .or. .not. c_associated(address)) then
      allocate(list(0))
      return
    end if
    allocate(list(count))
    call c_f_pointer(address, stored, [count])
    do i = 1, count
      times = seconds(stored(i)%times)
      list(i) = grpc_compression_info_t_np(stored(i)%valid /= 0, &
        int(stored(i)%original, c_int64_t), int(stored(i)%compressed, c_int64_t), &
        times(1), times(2), times(3), times(4))
    end do
  end subroutine
end module
