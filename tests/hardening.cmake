# Checks that PROGRAM was built and linked with what cmake/braid.cmake asks for in a release; READELF reads it.
execute_process(COMMAND ${READELF} -W -h -l -d --dyn-syms ${PROGRAM} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
foreach(sign
    "Type: +DYN [^\n]*Position-Independent"   # PIE
    "GNU_RELRO"
    "FLAGS_1. +Flags: [^\n]*NOW"              # and the whole table of addresses is read-only
    "GNU_STACK [^\n]* RW "                    # no code on the stack
    "__stack_chk_fail"                        # -fstack-protector-strong
    "__[a-z]+_chk[@ ]"                        # -D_FORTIFY_SOURCE
    "__glibcxx_assert_fail")                  # -D_GLIBCXX_ASSERTIONS
  if(NOT text MATCHES "${sign}")
    message(SEND_ERROR "${PROGRAM} lacks: ${sign}")
  endif()
endforeach()
