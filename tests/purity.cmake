# cmake -DNM=nm -DFILES="a.a;b.o" [-DTLS=ON] -P purity.cmake
# Fails when an archive or object imports a symbol by which code reads a clock, socket, file, thread, environment or
# random device: the core gets all of that as arguments (docs/design.md, "a sans-I/O core"). TLS=ON allows SSL_*.
cmake_minimum_required(VERSION 3.25)
set(forbidden
    # clocks and sleep
    clock_gettime clock_nanosleep clock_getres time gettimeofday times clock localtime localtime_r gmtime gmtime_r
    nanosleep usleep sleep alarm setitimer timer_create timerfd_create timespec_get
    # sockets and event loops
    socket socketpair bind connect listen accept accept4 "send.*" "recv.*" getsockopt setsockopt getaddrinfo
    gethostbyname poll ppoll select pselect "epoll_.*" eventfd "ev_.*" "mnl_.*"
    # files and processes; mmap() without a file is memory, and what would open a file for it is forbidden
    open open64 openat openat64 creat close read pread pread64 readv write pwrite pwrite64 writev ioctl fcntl fcntl64
    fopen fopen64 fdopen fread fwrite fputs puts putchar printf fprintf vfprintf __printf_chk __fprintf_chk
    fork vfork "exec[lv].*" system popen syscall shm_open memfd_create unlink rename mkdir opendir
    # threads
    "pthread_(create|mutex_.*|cond_.*|rwlock_.*|join|detach)" "sem_.*" sched_yield "mtx_.*" "thrd_.*" fut.*
    # environment and randomness
    getenv secure_getenv setenv rand rand_r srand random srandom drand48 "arc4random.*" getrandom getentropy
    # C++
    "_ZNSt6chrono.*3nowEv" "_ZNSt6thread.*" "_ZNSt11this_thread.*" "_ZNSt13random_device.*" "_ZNSt13basic_(i|o)?fstream.*"
    "_ZNSt14basic_(i|o)?fstream.*" "_ZNSt10filesystem.*" "_ZNSt18condition_variable.*" "_ZSt4c(out|err|log|in)" "_ZSt4clog"
    # OpenSSL other than ciphers and key derivation
    "RAND_.*" "BIO_.*" "DTLS.*")
if(NOT TLS)
  list(APPEND forbidden "SSL_.*")
endif()
list(JOIN forbidden "|" pattern)
set(found "")
set(total 0)
foreach(file ${FILES})
  execute_process(COMMAND ${NM} -u ${file} OUTPUT_VARIABLE text RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${NM} cannot read ${file}")
  endif()
  string(REGEX MATCHALL "[Uw] [A-Za-z_0-9.]+" symbols "${text}")
  list(LENGTH symbols count)
  math(EXPR total "${total} + ${count}")
  foreach(symbol ${symbols})
    string(SUBSTRING "${symbol}" 2 -1 name)
    if(name MATCHES "^(${pattern})$")
      string(APPEND found "\n  ${file}: forbidden symbol ${name}")
    endif()
  endforeach()
endforeach()
if(total EQUAL 0)
  message(FATAL_ERROR "no symbols read: nothing was checked")
endif()
if(found)
  message(FATAL_ERROR "The core must not touch the operating system:${found}")
endif()
message(STATUS "${total} imported symbols, none forbidden")
