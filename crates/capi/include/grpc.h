/*
 * grpc.h: the GridRPC API, as the standard (GFD-R.52) has it, with the extensions of Ninf-G.
 *
 * Names that end in _np are not in the standard. Those that neither Ninf-G nor the standard has
 * are in a section of their own, "Additions".
 *
 *   grpc_initialize("client.conf");
 *   grpc_function_handle_default(&handle, "sample/mmul");
 *   grpc_call(&handle, n, a, b, c);
 *   grpc_function_handle_destruct(&handle);
 *   grpc_finalize();
 *
 * Everything but grpc_initialize and grpc_finalize may be called from any number of threads at
 * once, grpc_wait_all and grpc_wait_any included. A function that returns grpc_error_t returns
 * GRPC_NO_ERROR or the reason; grpc_error_detail_np tells more about it.
 *
 * Texts are taken as const char *, so that C and C++ may pass literals. The library copies them.
 *
 * The C library of the other gRPC has the same prefix: see docs/c/README.md on using both.
 */
#ifndef GRIDRPC_GRPC_H
#define GRIDRPC_GRPC_H

#include <stddef.h>
#include <sys/time.h> /* struct timeval */

/*
 * What programs found behind the header of Ninf-G, and rely on. New programs that want their names
 * for themselves define GRPC_NO_OLD_NAMES: that leaves out these headers, the two complex types,
 * and the older names of members further down.
 */
#ifndef GRPC_NO_OLD_NAMES
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Complex numbers ------------------------------------------------------------------------- */

/*
 * The IDL's complex numbers. They lie in memory, and are passed by value, as C's float _Complex and
 * double _Complex, C++'s std::complex, and Fortran's complex do: calls take any of these.
 */
#ifndef GRPC_NO_OLD_NAMES
typedef struct grpc_scomplex_s_np {
    float r, i;
} scomplex;

typedef struct grpc_dcomplex_s_np {
    double r, i;
} dcomplex;
#endif

/* ---- Codes ----------------------------------------------------------------------------------- */

/* What functions return. Compare by name: other implementations use other numbers. */
typedef int grpc_error_t;

enum grpc_error_codes_np {
    GRPC_NO_ERROR = 0,
    GRPC_NOT_INITIALIZED = 1,           /* grpc_initialize has not been called */
    GRPC_ALREADY_INITIALIZED = 2,       /* grpc_initialize has been called before */
    GRPC_CONFIGFILE_NOT_FOUND = 3,      /* the configuration file cannot be read */
    GRPC_CONFIGFILE_ERROR = 4,          /* the configuration file says something malformed */
    GRPC_SERVER_NOT_FOUND = 5,          /* no such server, or workers cannot be started there */
    GRPC_FUNCTION_NOT_FOUND = 6,        /* no module that is known has such a function */
    GRPC_INVALID_FUNCTION_HANDLE = 7,   /* the handle is NULL, was never made, or is destructed */
    GRPC_INVALID_SESSION_ID = 8,        /* there is no such session, or no longer */
    GRPC_RPC_REFUSED = 9,               /* the server does not take the call */
    GRPC_COMMUNICATION_FAILED = 10,     /* the connection, or the worker behind it, was lost */
    GRPC_SESSION_FAILED = 11,           /* a session that was waited for failed */
    GRPC_NOT_COMPLETED = 12,            /* the session still runs */
    GRPC_NONE_COMPLETED = 13,           /* all sessions still run */
    GRPC_INVALID_OBJECT_HANDLE_NP = 14, /* as GRPC_INVALID_FUNCTION_HANDLE, of an object's handle */
    GRPC_CLASS_NOT_FOUND_NP = 15,       /* no module that is known has such a class */
    GRPC_TIMEOUT_NP = 16,               /* a time limit was reached */
    GRPC_CANCELED_NP = 17,              /* the session was cancelled */
    GRPC_OTHER_ERROR_CODE = 18,         /* anything else; grpc_error_detail_np says what */
    GRPC_UNKNOWN_ERROR_CODE = 19,       /* only as the text for numbers that are no code */
    GRPC_LAST_ERROR_CODE = 20           /* above all codes */
};

/* One call that was made without waiting for it; 0 or greater. */
typedef int grpc_sessionid_t;

/* No session. */
#define GRPC_SESSIONID_VOID (-1)

/* How a session is getting on: what grpc_session_info_get_np stores as status. */
enum grpc_session_status_np {
    GRPC_SESSION_DONE = 1,                   /* it has ended */
    GRPC_SESSION_ARG_IS_NOT_TRANSMITTED = 2, /* it waits, or its arguments are on the way */
    GRPC_SESSION_EXECUTING = 3,              /* it runs */
    GRPC_SESSION_DOWN = 4,                   /* it was lost */
    GRPC_SESSION_UNKNOWN_STATUS = 5          /* the question could not be answered */
};

/* This is how the headers of Ninf-G 2 to 4 spelt it. */
#define GRPC_SESSION_ARG_IS_NOT_TRANSMITED GRPC_SESSION_ARG_IS_NOT_TRANSMITTED

/* ---- Handles --------------------------------------------------------------------------------- */

/*
 * Handles are small values that hold a number and a generation, never an address. So the library
 * tells one that was never initialised or has been destructed, and says so. A handle may be copied;
 * all copies stand for the same thing, and destructing one of them destructs it.
 */

/* A remote function, found and checked; workers are chosen for each call. */
typedef struct grpc_function_handle_s {
    unsigned long long gridrpc_private[4];
} grpc_function_handle_t;

/* A remote object: an instance of a class of a module, with a worker process of its own. */
typedef struct grpc_object_handle_s_np {
    unsigned long long gridrpc_private[4];
} grpc_object_handle_t_np;

/* What a handle is to be like; to be initialised, and destructed in the end. */
typedef struct grpc_handle_attr_s_np {
    unsigned long long gridrpc_private[4];
} grpc_handle_attr_t_np;

/* What a session is to be like; to be initialised, and destructed in the end. */
typedef struct grpc_session_attr_s_np {
    unsigned long long gridrpc_private[4];
} grpc_session_attr_t_np;

/* When a call that is not waited for returns: what happens to its arguments before that. */
typedef enum grpc_argument_transfer_e_np {
    GRPC_ARGUMENT_TRANSFER_UNDEFINED = 0, /* as the configuration has it */
    GRPC_ARGUMENT_TRANSFER_WAIT = 1,      /* they are sent; the caller may change them then */
    GRPC_ARGUMENT_TRANSFER_NOWAIT = 2,    /* nothing; the caller leaves them alone until the end */
    GRPC_ARGUMENT_TRANSFER_COPY = 3       /* they are copied; the caller may change them then */
} grpc_argument_transfer_t_np;

/* Attributes of handles, and what the value points to. */
typedef enum grpc_handle_attr_name_e_np {
    GRPC_HANDLE_ATTR_HOSTNAME = 0,          /* char: host, or a server's tag in the configuration */
    GRPC_HANDLE_ATTR_PORT = 1,              /* int; kept, without effect */
    GRPC_HANDLE_ATTR_JOBMANAGER = 2,        /* char; kept, without effect */
    GRPC_HANDLE_ATTR_SUBJECT = 3,           /* char; kept, without effect */
    GRPC_HANDLE_ATTR_FUNCNAME = 4,          /* char: function or class, "module/name" */
    GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT = 5,   /* int: s until a worker must have started; 0 none */
    GRPC_HANDLE_ATTR_JOBSTOPTIMEOUT = 6,    /* int: s to wait for its end; -1 no limit, 0 none */
    GRPC_HANDLE_ATTR_WAIT_ARG_TRANSFER = 7, /* grpc_argument_transfer_t_np */
    GRPC_HANDLE_ATTR_QUEUENAME = 8,         /* char; kept, without effect */
    GRPC_HANDLE_ATTR_MPI_NCPUS = 9,         /* int: ranks of a function with Backend "MPI" */
    /* Not in Ninf-G: what each call of a function asks for beside the place of a worker. */
    GRPC_HANDLE_ATTR_CORES = 10,        /* int: processors of one host; of each rank */
    GRPC_HANDLE_ATTR_MEMORY = 11,       /* char: "4 GB", "512 MiB" */
    GRPC_HANDLE_ATTR_RESOURCES = 12,    /* char: what else, "gpu=1" or "gpu=1, licence=2" */
    GRPC_HANDLE_ATTR_EXPECTED_TIME = 13 /* int: s that it is expected to run */
} grpc_handle_attr_name_t_np;

/* Attributes of sessions, and what the value points to. */
typedef enum grpc_session_attr_name_e_np {
    GRPC_SESSION_ATTR_WAIT_ARG_TRANSFER = 0, /* grpc_argument_transfer_t_np */
    GRPC_SESSION_ATTR_SESSION_TIMEOUT = 1,   /* int: s from the call on; 0 none */
    /* int: s; kept, without effect: GRPC_SESSION_ATTR_SESSION_TIMEOUT limits all of it */
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_ARGUMENT = 2,
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_RESULT = 3,
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_CALLBACK_ARGUMENT = 4,
    GRPC_SESSION_ATTR_TRANSFER_TIMEOUT_CALLBACK_RESULT = 5
} grpc_session_attr_name_t_np;

/* A list of arguments that is built at run time. */
typedef struct grpc_arg_stack_s grpc_arg_stack_t;

/* ---- Session information --------------------------------------------------------------------- */

/* What the worker measured. Times that were not measured are 0. */
typedef struct grpc_exec_info_executable_s_np {
    int callbackNtimesCalled; /* how many callbacks it made */

    struct timeval transferArgumentToRemoteRealTime; /* taking the arguments in */
    struct timeval transferArgumentToRemoteCpuTime;
    struct timeval transferFileToRemoteRealTime; /* the part of it that went into files */
    struct timeval transferFileToRemoteCpuTime;
    struct timeval calculationRealTime; /* running the function, callbacks included */
    struct timeval calculationCpuTime;
    struct timeval transferResultToClientRealTime; /* sending the results */
    struct timeval transferResultToClientCpuTime;
    struct timeval transferFileToClientRealTime; /* the part of it that went into files */
    struct timeval transferFileToClientCpuTime;
    struct timeval callbackTransferArgumentToClientRealTime; /* all callbacks: their arguments, */
    struct timeval callbackTransferArgumentToClientCpuTime;
    struct timeval callbackCalculationRealTime; /* until the answers came, */
    struct timeval callbackCalculationCpuTime;
    struct timeval callbackTransferResultToRemoteRealTime; /* and their results */
    struct timeval callbackTransferResultToRemoteCpuTime;
} grpc_exec_info_executable_t_np;

/* What this process measured. Times that were not measured are 0. */
typedef struct grpc_exec_info_client_s_np {
    int callbackNtimesCalled; /* how many callbacks it ran */

    struct timeval remoteMachineInfoRequestRealTime; /* always 0: nothing has to be requested */
    struct timeval remoteMachineInfoRequestCpuTime;
    struct timeval remoteClassInfoRequestRealTime; /* reading the interface out of the module */
    struct timeval remoteClassInfoRequestCpuTime;
    struct timeval gramInvokeRealTime; /* starting the worker; 0 if it ran already */
    struct timeval gramInvokeCpuTime;
    struct timeval transferArgumentToRemoteRealTime; /* handing the arguments over */
    struct timeval transferArgumentToRemoteCpuTime;
    struct timeval calculationRealTime; /* from the arguments' end to the results' begin */
    struct timeval calculationCpuTime;
    struct timeval transferResultToClientRealTime; /* bringing the results to their places */
    struct timeval transferResultToClientCpuTime;
    struct timeval callbackTransferArgumentToClientRealTime; /* all callbacks: their arguments, */
    struct timeval callbackTransferArgumentToClientCpuTime;
    struct timeval callbackCalculationRealTime; /* the functions themselves, */
    struct timeval callbackCalculationCpuTime;
    struct timeval callbackTransferResultToRemoteRealTime; /* and their results */
    struct timeval callbackTransferResultToRemoteCpuTime;

    struct timeval waitForWorkerRealTime; /* not in Ninf-G: until a worker was chosen */
} grpc_exec_info_client_t_np;

/* What compressing one argument brought. Nothing is compressed today: `valid` is 0. */
typedef struct grpc_compression_info_s_np {
    int valid;                /* 1 if the rest says something */
    size_t originalNbytes;    /* bytes before */
    size_t compressionNbytes; /* bytes after */
    struct timeval compressionRealTime;
    struct timeval compressionCpuTime;
    struct timeval decompressionRealTime;
    struct timeval decompressionCpuTime;
} grpc_compression_info_t_np;

/* Not in Ninf-G: how much was moved, and where the session ran. */
typedef struct grpc_session_place_s_np {
    unsigned long long argumentNbytes;         /* to the worker */
    unsigned long long resultNbytes;           /* back */
    unsigned long long callbackArgumentNbytes; /* of all callbacks: from the worker */
    unsigned long long callbackResultNbytes;   /* to the worker */
    int workerNumber;                          /* which worker, from 0; -1 as long as none has it */
    int attempts;                              /* how often it was begun; above 1 after losses */
    long processId;                            /* of the worker; 0 if unknown */
    char hostname[256];                        /* of the worker, ended by a 0 */
} grpc_session_place_t_np;

/* Everything about one session. */
typedef struct grpc_session_info_s_np {
    grpc_exec_info_executable_t_np gei_measureExecutable;
    grpc_exec_info_client_t_np gei_measureClient;

    struct {
        int nElements; /* how many elements the two have: one per argument, or 0 */
        grpc_compression_info_t_np *toRemote;
        grpc_compression_info_t_np *toClient;
    } gei_compressionInformation;

    grpc_session_place_t_np gei_place;
} grpc_session_info_t_np;

/* The older name of the same. */
typedef grpc_session_info_t_np grpc_exec_info_t_np;

/* Members had other names in older versions of Ninf-G, which programs may still use. */
#ifndef GRPC_NO_OLD_NAMES
#define transferArgumentRealTime transferArgumentToRemoteRealTime
#define transferArgumentCpuTime transferArgumentToRemoteCpuTime
#define transferFileClientToRemoteRealTime transferFileToRemoteRealTime
#define transferFileClientToRemoteCpuTime transferFileToRemoteCpuTime
#define transferResultRealTime transferResultToClientRealTime
#define transferResultCpuTime transferResultToClientCpuTime
#define transferFileRemoteToClientRealTime transferFileToClientRealTime
#define transferFileRemoteToClientCpuTime transferFileToClientCpuTime
#define callbackTransferArgumentRealTime callbackTransferArgumentToClientRealTime
#define callbackTransferArgumentCpuTime callbackTransferArgumentToClientCpuTime
#define callbackTransferResultRealTime callbackTransferResultToRemoteRealTime
#define callbackTransferResultCpuTime callbackTransferResultToRemoteCpuTime
#define executableRealTime calculationRealTime
#define executableCpuTime calculationCpuTime
#define clientRealTime calculationRealTime
#define clientCpuTime calculationCpuTime
#define grpc_get_last_error_np grpc_last_error_get_np
#endif

/* ---- Beginning and end ----------------------------------------------------------------------- */

/*
 * Reads the configuration and opens the grid. NULL or "": the file that $NG_CONFIG_FILE names, or
 * else $HOME/.ngconf, or else what is built in. Not to be called from several threads at once.
 */
grpc_error_t grpc_initialize(const char *config_file_name);

/* Cancels what still runs, ends all workers, and makes all handles and sessions invalid. */
grpc_error_t grpc_finalize(void);

/* Reads the configuration again; it holds for handles that are made afterwards. */
grpc_error_t grpc_config_file_read_np(const char *config_file_name);

/* ---- Function handles ------------------------------------------------------------------------ */

/* Makes a handle of a function that is bound to no server: its calls run wherever there is room. */
grpc_error_t grpc_function_handle_default(grpc_function_handle_t *handle, const char *func_name);

/* The same bound to a server, or to a host, by name: its calls run there and nowhere else. */
grpc_error_t grpc_function_handle_init(grpc_function_handle_t *handle, const char *server_name,
                                       const char *func_name);

/* The same with everything given as attributes. */
grpc_error_t grpc_function_handle_init_with_attr_np(grpc_function_handle_t *handle,
                                                    grpc_handle_attr_t_np *attr);

/* Gives the handle up, and cancels what was begun with it and still runs. */
grpc_error_t grpc_function_handle_destruct(grpc_function_handle_t *handle);

/* Makes `nhandles` handles at once, and room for as many calls at a time. All or none. */
grpc_error_t grpc_function_handle_array_default_np(grpc_function_handle_t *handles, size_t nhandles,
                                                   const char *func_name);

/* The same on a given server. */
grpc_error_t grpc_function_handle_array_init_np(grpc_function_handle_t *handles, size_t nhandles,
                                                const char *server_name, const char *func_name);

/* The same with everything given as attributes. */
grpc_error_t grpc_function_handle_array_init_with_attr_np(grpc_function_handle_t *handles,
                                                          size_t nhandles,
                                                          grpc_handle_attr_t_np *attr);

/* Gives all of them up. */
grpc_error_t grpc_function_handle_array_destruct_np(grpc_function_handle_t *handles,
                                                    size_t nhandles);

/* Stores the handle that a session was begun with: the caller's own, not a copy. */
grpc_error_t grpc_get_handle(grpc_function_handle_t **handle, grpc_sessionid_t session_id);

/* The same under its Ninf-G name. */
grpc_error_t grpc_function_handle_get_from_session_np(grpc_function_handle_t **handle,
                                                      grpc_sessionid_t session_id);

/* Makes attributes with the values that the handle has. */
grpc_error_t grpc_function_handle_get_attr_np(grpc_function_handle_t *handle,
                                              grpc_handle_attr_t_np *attr);

/* Returns the last error of a call with this handle. */
grpc_error_t grpc_function_handle_get_error_np(grpc_function_handle_t *handle);

/* Prints "TEXT: the last error of the handle" to standard error. */
grpc_error_t grpc_function_handle_perror_np(grpc_function_handle_t *handle, const char *text);

/* Returns GRPC_NO_ERROR when there is a worker for it, GRPC_NOT_COMPLETED while one is starting. */
grpc_error_t grpc_function_handle_is_ready_np(grpc_function_handle_t *handle);

/* ---- Object handles -------------------------------------------------------------------------- */

/* Starts a worker with an object of a class, "module/class", on the default server. */
grpc_error_t grpc_object_handle_default_np(grpc_object_handle_t_np *handle, const char *class_name);

/* The same on a given server. */
grpc_error_t grpc_object_handle_init_np(grpc_object_handle_t_np *handle, const char *server_name,
                                        const char *class_name);

/* The same with everything given as attributes. */
grpc_error_t grpc_object_handle_init_with_attr_np(grpc_object_handle_t_np *handle,
                                                  grpc_handle_attr_t_np *attr);

/* Ends the object: cancels what it runs, has it finalize, and ends its worker. */
grpc_error_t grpc_object_handle_destruct_np(grpc_object_handle_t_np *handle);

/* Starts `nhandles` objects at once. All or none. */
grpc_error_t grpc_object_handle_array_default_np(grpc_object_handle_t_np *handles, size_t nhandles,
                                                 const char *class_name);

/* The same on a given server. */
grpc_error_t grpc_object_handle_array_init_np(grpc_object_handle_t_np *handles, size_t nhandles,
                                              const char *server_name, const char *class_name);

/* The same with everything given as attributes. */
grpc_error_t grpc_object_handle_array_init_with_attr_np(grpc_object_handle_t_np *handles,
                                                        size_t nhandles,
                                                        grpc_handle_attr_t_np *attr);

/* Ends all of them. */
grpc_error_t grpc_object_handle_array_destruct_np(grpc_object_handle_t_np *handles,
                                                  size_t nhandles);

/* Stores the handle that a session was begun with: the caller's own, not a copy. */
grpc_error_t grpc_object_handle_get_from_session_np(grpc_object_handle_t_np **handle,
                                                    grpc_sessionid_t session_id);

/* Makes attributes with the values that the handle has. */
grpc_error_t grpc_object_handle_get_attr_np(grpc_object_handle_t_np *handle,
                                            grpc_handle_attr_t_np *attr);

/* Returns the last error of this object. */
grpc_error_t grpc_object_handle_get_error_np(grpc_object_handle_t_np *handle);

/* Prints "TEXT: the last error of the object" to standard error. */
grpc_error_t grpc_object_handle_perror_np(grpc_object_handle_t_np *handle, const char *text);

/* Returns GRPC_NO_ERROR when the object's worker is up, GRPC_NOT_COMPLETED while it is starting. */
grpc_error_t grpc_object_handle_is_ready_np(grpc_object_handle_t_np *handle);

/* ---- Attributes of handles ------------------------------------------------------------------- */

/* Makes attributes without any value: everything is as the configuration has it. */
grpc_error_t grpc_handle_attr_initialize_np(grpc_handle_attr_t_np *attr);

/* Gives the attributes up. Handles that were made with them stay. */
grpc_error_t grpc_handle_attr_destruct_np(grpc_handle_attr_t_np *attr);

/* Stores a copy of a value, to be released by the caller, or NULL if there is none. */
grpc_error_t grpc_handle_attr_get_np(grpc_handle_attr_t_np *attr, grpc_handle_attr_name_t_np name,
                                     void **value);

/* Sets a value, which is copied. NULL takes it away. */
grpc_error_t grpc_handle_attr_set_np(grpc_handle_attr_t_np *attr, grpc_handle_attr_name_t_np name,
                                     const void *value);

/* Frees what grpc_handle_attr_get_np stored. */
grpc_error_t grpc_handle_attr_release_np(void *value);

/* ---- Attributes of sessions ------------------------------------------------------------------ */

/* Makes attributes with the values that sessions of this handle have by themselves. */
grpc_error_t grpc_session_attr_initialize_np(grpc_function_handle_t *handle,
                                             grpc_session_attr_t_np *attr);

/* The same for an object's handle. */
grpc_error_t grpc_session_attr_initialize_with_object_handle_np(grpc_object_handle_t_np *handle,
                                                                grpc_session_attr_t_np *attr);

/* Gives the attributes up. Sessions that were begun with them stay. */
grpc_error_t grpc_session_attr_destruct_np(grpc_session_attr_t_np *attr);

/* Stores a copy of a value, to be released by the caller. */
grpc_error_t grpc_session_attr_get_np(grpc_session_attr_t_np *attr,
                                      grpc_session_attr_name_t_np name, void **value);

/* Sets a value, which is copied. */
grpc_error_t grpc_session_attr_set_np(grpc_session_attr_t_np *attr,
                                      grpc_session_attr_name_t_np name, const void *value);

/* Frees what grpc_session_attr_get_np stored. */
grpc_error_t grpc_session_attr_release_np(void *value);

/* ---- Calls ----------------------------------------------------------------------------------- */

/*
 * A call has one argument for each parameter of the interface, in its order, and the interface
 * says how it is taken: numbers by value, with C's promotions; arrays as the address of the first
 * element; strings and file names as char *, and as char ** to get one back, which the caller
 * frees; callbacks as functions. WORK parameters have an argument as well, which is not looked at.
 * With `fortran_compatible true` in the configuration, numbers go by address too.
 */

/* Calls the function and waits for its end. */
grpc_error_t grpc_call(grpc_function_handle_t *handle, ...);

/* Begins a call, and stores its session. Results are there when it has been waited for. */
grpc_error_t grpc_call_async(grpc_function_handle_t *handle, grpc_sessionid_t *session_id, ...);

/* grpc_call with session attributes. */
grpc_error_t grpc_call_with_attr_np(grpc_function_handle_t *handle, grpc_session_attr_t_np *attr,
                                    ...);

/* grpc_call_async with session attributes. */
grpc_error_t grpc_call_async_with_attr_np(grpc_function_handle_t *handle,
                                          grpc_sessionid_t *session_id,
                                          grpc_session_attr_t_np *attr, ...);

/* Room for the id of a detached call. */
#define GRPC_DETACHED_ID_SIZE_NP 512

/*
 * Has the server of a handle run a call even if this program ends. Stores the call's id, with a NUL,
 * when the server has stored the call. Results are left out: any program of the user takes them.
 */
grpc_error_t grpc_detach_np(grpc_function_handle_t *handle, char *id, size_t size, ...);

/*
 * Has the server of a session continue with its call even if this program ends, and stores the call's
 * id. The session ends with the result of the detached call.
 */
grpc_error_t grpc_detach_session_np(grpc_sessionid_t session_id, char *id, size_t size);

/*
 * Attaches to a detached call, with the arguments of that call, and stores a session. Results are
 * there when it has been waited for.
 */
grpc_error_t grpc_attach_np(grpc_function_handle_t *handle, const char *id,
                            grpc_sessionid_t *session_id, ...);

/* Calls a method of an object and waits for its end. */
grpc_error_t grpc_invoke_np(grpc_object_handle_t_np *handle, const char *method_name, ...);

/* Begins a call of a method. An object's methods run one after the other, in the order begun. */
grpc_error_t grpc_invoke_async_np(grpc_object_handle_t_np *handle, const char *method_name,
                                  grpc_sessionid_t *session_id, ...);

/* grpc_invoke_np with session attributes. */
grpc_error_t grpc_invoke_with_attr_np(grpc_object_handle_t_np *handle, const char *method_name,
                                      grpc_session_attr_t_np *attr, ...);

/* grpc_invoke_async_np with session attributes. */
grpc_error_t grpc_invoke_async_with_attr_np(grpc_object_handle_t_np *handle,
                                            const char *method_name, grpc_sessionid_t *session_id,
                                            grpc_session_attr_t_np *attr, ...);

/* ---- Calls with argument stacks -------------------------------------------------------------- */

/*
 * A stack has what one call needs, the first parameter first. Every argument is an address:
 * of the number, of an array's first element, a char * (or char **) as in grpc_call, a function.
 * A call leaves the stack as it is. What the addresses of numbers point to is read when the call
 * begins.
 */

/* Makes a stack for at most `max_args` arguments; NULL if that is negative or memory is short. */
grpc_arg_stack_t *grpc_arg_stack_new(int max_args);

/* Adds an argument. Returns 0, or -1 if the stack is full or none. */
int grpc_arg_stack_push_arg(grpc_arg_stack_t *stack, void *argument);

/*
 * Adds an array with its length, which calls check against the interface: one that is shorter or
 * longer is an error. Not in Ninf-G.
 */
int grpc_arg_stack_push_array_np(grpc_arg_stack_t *stack, void *array, size_t nbytes);

/* Takes the argument added last away and returns it; NULL if there is none. */
void *grpc_arg_stack_pop_arg(grpc_arg_stack_t *stack);

/* Frees the stack, not what its arguments point to. Returns 0, or -1 if it is none. */
int grpc_arg_stack_destruct(grpc_arg_stack_t *stack);

/* grpc_call with a stack. */
grpc_error_t grpc_call_arg_stack(grpc_function_handle_t *handle, grpc_arg_stack_t *stack);

/* Begins a call with a stack. Returns its session, or GRPC_SESSIONID_VOID if that failed. */
grpc_sessionid_t grpc_call_arg_stack_async(grpc_function_handle_t *handle, grpc_arg_stack_t *stack);

/* grpc_call_arg_stack with session attributes. */
grpc_error_t grpc_call_arg_stack_with_attr_np(grpc_function_handle_t *handle,
                                              grpc_session_attr_t_np *attr,
                                              grpc_arg_stack_t *stack);

/* grpc_call_arg_stack_async with session attributes. */
grpc_sessionid_t grpc_call_arg_stack_async_with_attr_np(grpc_function_handle_t *handle,
                                                        grpc_session_attr_t_np *attr,
                                                        grpc_arg_stack_t *stack);

/* grpc_detach_np with a stack. */
grpc_error_t grpc_detach_arg_stack_np(grpc_function_handle_t *handle, char *id, size_t size,
                                      grpc_arg_stack_t *stack);

/* grpc_attach_np with a stack. */
grpc_error_t grpc_attach_arg_stack_np(grpc_function_handle_t *handle, const char *id,
                                      grpc_sessionid_t *session_id, grpc_arg_stack_t *stack);

/* grpc_invoke_np with a stack. */
grpc_error_t grpc_invoke_arg_stack_np(grpc_object_handle_t_np *handle, const char *method_name,
                                      grpc_arg_stack_t *stack);

/* Begins a call of a method with a stack. Returns its session, or GRPC_SESSIONID_VOID. */
grpc_sessionid_t grpc_invoke_arg_stack_async_np(grpc_object_handle_t_np *handle,
                                                const char *method_name, grpc_arg_stack_t *stack);

/* grpc_invoke_arg_stack_np with session attributes. */
grpc_error_t grpc_invoke_arg_stack_with_attr_np(grpc_object_handle_t_np *handle,
                                                const char *method_name,
                                                grpc_session_attr_t_np *attr,
                                                grpc_arg_stack_t *stack);

/* grpc_invoke_arg_stack_async_np with session attributes. */
grpc_sessionid_t grpc_invoke_arg_stack_async_with_attr_np(grpc_object_handle_t_np *handle,
                                                          const char *method_name,
                                                          grpc_session_attr_t_np *attr,
                                                          grpc_arg_stack_t *stack);

/* ---- Sessions: cancel, probe, wait ----------------------------------------------------------- */

/* Asks a session to end, and does not wait for that. It ends with GRPC_CANCELED_NP, if in time. */
grpc_error_t grpc_cancel(grpc_sessionid_t session_id);

/* Cancels all sessions that run, and all calls that other threads wait for. */
grpc_error_t grpc_cancel_all(void);

/* Returns GRPC_NO_ERROR if the session has ended, however, and GRPC_NOT_COMPLETED if it runs. */
grpc_error_t grpc_probe(grpc_sessionid_t session_id);

/* Stores one of `n` sessions that has ended, or returns GRPC_NONE_COMPLETED. */
grpc_error_t grpc_probe_or(const grpc_sessionid_t *session_ids, size_t n,
                           grpc_sessionid_t *done_id);

/* Waits for a session. GRPC_SESSION_FAILED if it failed: grpc_get_error has the reason. */
grpc_error_t grpc_wait(grpc_sessionid_t session_id);

/* Waits for all `n` sessions. GRPC_SESSION_FAILED if any failed: grpc_get_failed_sessionid. */
grpc_error_t grpc_wait_and(const grpc_sessionid_t *session_ids, size_t n);

/* Waits until one of `n` sessions has ended, and stores which. */
grpc_error_t grpc_wait_or(const grpc_sessionid_t *session_ids, size_t n,
                          grpc_sessionid_t *done_id);

/* Waits for all sessions that were not waited for. None is no error. */
grpc_error_t grpc_wait_all(void);

/* Waits for any session that was not waited for, and stores which; GRPC_SESSIONID_VOID if none. */
grpc_error_t grpc_wait_any(grpc_sessionid_t *done_id);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Returns what the session ended with; GRPC_NO_ERROR while it runs, as grpc_probe shows. */
grpc_error_t grpc_get_error(grpc_sessionid_t session_id);

/* Returns a text for a code, to be read only and never freed. */
char *grpc_error_string(grpc_error_t error_code);

/* Stores one after the other the sessions for which a wait failed, then GRPC_SESSIONID_VOID. */
grpc_error_t grpc_get_failed_sessionid(grpc_sessionid_t *session_id);

/* Returns the last error of a function of this library in this thread. */
grpc_error_t grpc_last_error_get_np(void);

/* Prints "TEXT: the last error of this thread" with its detail to standard error. */
grpc_error_t grpc_perror_np(const char *text);

/* ---- Session information --------------------------------------------------------------------- */

/* Stores a session's information, to be released, and its status; either may be NULL. */
grpc_error_t grpc_session_info_get_np(grpc_sessionid_t session_id, grpc_session_info_t_np **info,
                                      int *status);

/* Frees what grpc_session_info_get_np stored. */
grpc_error_t grpc_session_info_release_np(grpc_session_info_t_np *info);

/* Forgets a session that has ended. */
grpc_error_t grpc_session_info_remove_np(grpc_sessionid_t session_id);

/* How many sessions that have ended are kept: 0 none, negative all. The oldest are forgotten. */
grpc_error_t grpc_session_info_set_threshold_np(int threshold);

/* Older: stores the information into the caller's own struct, without anything to release. */
grpc_error_t grpc_get_info_np(grpc_sessionid_t session_id, grpc_exec_info_t_np *info, int *status);

/* Older: the same for the session that ended last. */
grpc_error_t grpc_get_last_info_np(grpc_exec_info_t_np *info, int *status);

/* ---- Signals, and the worker's side ---------------------------------------------------------- */

/*
 * Sets what happens at a signal between grpc_initialize and grpc_finalize. The handler runs in a
 * thread of its own, where it may do anything; signals that the program raises itself by an error,
 * such as SIGSEGV, are handled by sigaction as usual. SIG_DFL and SIG_IGN are allowed.
 */
grpc_error_t grpc_signal_handler_set_np(int signal_number, void (*signal_handler)(int));

/* In a remote function: whether the call has been cancelled. `error` may be NULL. */
int grpc_is_canceled_np(grpc_error_t *error);

/* ---- Additions: not in Ninf-G ---------------------------------------------------------------- */

/* How a parameter goes. */
typedef enum grpc_mode_e_np {
    GRPC_MODE_IN_NP = 1,
    GRPC_MODE_OUT_NP = 2,
    GRPC_MODE_INOUT_NP = 3,
    GRPC_MODE_WORK_NP = 4
} grpc_mode_t_np;

/* What a parameter, or an element of it, is. */
typedef enum grpc_type_e_np {
    GRPC_TYPE_NONE_NP = 0, /* a callback has none */
    GRPC_TYPE_CHAR_NP = 1,
    GRPC_TYPE_UNSIGNED_CHAR_NP = 2,
    GRPC_TYPE_SHORT_NP = 3,
    GRPC_TYPE_UNSIGNED_SHORT_NP = 4,
    GRPC_TYPE_INT_NP = 5,
    GRPC_TYPE_UNSIGNED_INT_NP = 6,
    GRPC_TYPE_LONG_NP = 7,
    GRPC_TYPE_UNSIGNED_LONG_NP = 8,
    GRPC_TYPE_LONG_LONG_NP = 9,
    GRPC_TYPE_UNSIGNED_LONG_LONG_NP = 10,
    GRPC_TYPE_FLOAT_NP = 11,
    GRPC_TYPE_DOUBLE_NP = 12,
    GRPC_TYPE_SCOMPLEX_NP = 13, /* float _Complex */
    GRPC_TYPE_DCOMPLEX_NP = 14, /* double _Complex */
    GRPC_TYPE_INT8_NP = 15,
    GRPC_TYPE_UINT8_NP = 16,
    GRPC_TYPE_INT16_NP = 17,
    GRPC_TYPE_UINT16_NP = 18,
    GRPC_TYPE_INT32_NP = 19,
    GRPC_TYPE_UINT32_NP = 20,
    GRPC_TYPE_INT64_NP = 21,
    GRPC_TYPE_UINT64_NP = 22,
    GRPC_TYPE_STRING_NP = 23,
    GRPC_TYPE_FILENAME_NP = 24
} grpc_type_t_np;

/* One parameter of an interface. */
typedef struct grpc_parameter_s_np {
    const char *name; /* the library's; stays as long as the process */
    grpc_mode_t_np mode;
    grpc_type_t_np type;
    int is_array;    /* 1 if an address of elements is passed */
    int is_callback; /* 1 if a function is passed */
} grpc_parameter_np;

/*
 * Stores how many parameters a function has, and up to `capacity` of them, in their order.
 * With capacity 0, `parameters` may be NULL.
 */
grpc_error_t grpc_function_parameters_np(grpc_function_handle_t *handle,
                                         grpc_parameter_np *parameters, size_t capacity,
                                         size_t *count);

/* The same for a method of an object. GRPC_FUNCTION_NOT_FOUND if its class has no such method. */
grpc_error_t grpc_method_parameters_np(grpc_object_handle_t_np *handle, const char *method_name,
                                       grpc_parameter_np *parameters, size_t capacity,
                                       size_t *count);

/*
 * Returns all that is known about an error: the cause, the host, the worker, its exit status or
 * signal, and the end of what it wrote to standard error. GRPC_SESSIONID_VOID: about the last error
 * of this thread. Never NULL. The text stays until the next call of this function in this thread.
 */
const char *grpc_error_detail_np(grpc_sessionid_t session_id);

/*
 * Memory for arrays that calls need not copy: workers on this host see it itself. Filled with 0,
 * NULL if there is none left. Elsewhere, and for everything else, it is memory like any other.
 */
void *grpc_malloc_np(size_t nbytes);

/* Frees it. NULL is allowed; memory from elsewhere is left alone, and is an error. */
grpc_error_t grpc_free_np(void *memory);

/* grpc_call_arg_stack_async as DIET has it: returns the error, and stores the session. */
grpc_error_t grpc_call_argstack_async(grpc_function_handle_t *handle, grpc_sessionid_t *session_id,
                                      grpc_arg_stack_t *stack);

/* The same for a method of an object. */
grpc_error_t grpc_invoke_argstack_async_np(grpc_object_handle_t_np *handle, const char *method_name,
                                           grpc_sessionid_t *session_id, grpc_arg_stack_t *stack);

/* ---- Names of other implementations ---------------------------------------------------------- */

/* DIET's names of the stack functions. */
#define grpc_stack_create(max_args) grpc_arg_stack_new((int)(max_args))
#define grpc_stack_push(stack, argument) grpc_arg_stack_push_arg((stack), (argument))
#define grpc_stack_pop(stack) grpc_arg_stack_pop_arg(stack)
#define grpc_stack_destruct(stack) grpc_arg_stack_destruct(stack)
#define grpc_call_argstack(handle, stack) grpc_call_arg_stack((handle), (stack))

/* Those of the draft that NetSolve followed have no prefix, so one has to ask for them. */
#ifdef GRPC_NETSOLVE_NAMES
#define newArgStack(max_args) grpc_arg_stack_new(max_args)
#define pushArg(stack, argument) grpc_arg_stack_push_arg((stack), (argument))
#define popArg(stack) grpc_arg_stack_pop_arg(stack)
#define destructArgStack(stack) grpc_arg_stack_destruct(stack)
#endif

#ifdef __cplusplus
}
#endif

#endif /* GRIDRPC_GRPC_H */
