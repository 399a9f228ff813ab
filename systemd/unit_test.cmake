# Installs the unit below PREFIX with the installation script SCRIPT and checks what it names.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${PREFIX} -P ${SCRIPT} COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PREFIX}/lib/systemd/system/braid@.service text)
foreach(line "ExecStart=${PREFIX}/bin/braidd --config" "ExecStartPre=${PREFIX}/bin/braidd --check"
        "file:${PREFIX}/share/doc/braid/operations.md" "ConditionPathExists=/etc/braid/%i.key" "SystemCallFilter=capset"
        "RestartSec=100ms" "StartLimitIntervalSec=0" "LimitCORE=0")
  string(FIND "${text}" "${line}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "the installed unit lacks: ${line}")
  endif()
endforeach()
