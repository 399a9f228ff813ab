# Installs the units and the documents below PREFIX with the installation scripts SCRIPT and DOCUMENTS, and checks what
# they name.
file(REMOVE_RECURSE ${PREFIX})
foreach(script ${SCRIPT} ${DOCUMENTS})
  execute_process(COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${PREFIX} -P ${script} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
function(has unit)
  file(READ ${PREFIX}/lib/systemd/system/${unit} text)
  foreach(line ${ARGN})
    string(FIND "${text}" "${line}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "the installed ${unit} lacks: ${line}")
    endif()
  endforeach()
endfunction()
has(braid@.service "ExecStart=${PREFIX}/bin/braidd --config" "ExecStartPre=${PREFIX}/bin/braidd --check"
    "file:${PREFIX}/share/doc/braid/guide.md" "ConditionPathExists=/etc/braid/%i.key" "SystemCallFilter=capset seccomp landlock_create_ruleset"
    "RestartSec=100ms" "StartLimitIntervalSec=0" "ExecStartPost=-/bin/touch /run/braid/%i.started"
    "ExecStopPost=/bin/sh -c 'rm /run/braid/%i.started 2>/dev/null || sleep 1'" "LimitCORE=0"
    "ExecStartPre=+-${PREFIX}/bin/braidctl guard apply /etc/braid/%i.yaml"
    "ExecStartPost=+-${PREFIX}/bin/braidctl dns set /etc/braid/%i.yaml"
    "ExecStopPost=+-${PREFIX}/bin/braidctl dns remove /etc/braid/%i.yaml")
has(braid-guard@.service "ExecStart=${PREFIX}/bin/braidctl guard apply" "Before=network-pre.target"
    "file:${PREFIX}/share/doc/braid/guide.md")
if(WEB)
  has(braid-web@.service "ExecStart=${PREFIX}/bin/braid-web --socket %i" "DynamicUser=yes" "SupplementaryGroups=braid"
      "StartLimitIntervalSec=0" "CapabilityBoundingSet=\n"
      "file:${PREFIX}/share/doc/braid/guide.md")
endif()

# What fails is tried less often after a while, by a systemd that knows how. None warns of a key.
if(NOT SYSTEMD OR SYSTEMD VERSION_GREATER_EQUAL 254)
  has(braid@.service "RestartSteps=8" "RestartMaxDelaySec=10s")
endif()
if(ANALYZE)
  file(GLOB units ${PREFIX}/lib/systemd/system/*.service)
  execute_process(COMMAND ${ANALYZE} verify --man=no ${units} OUTPUT_VARIABLE told ERROR_VARIABLE told)
  string(REGEX MATCHALL "[^\n]*Unknown (key|lvalue)[^\n]*" unknown "${told}")
  if(unknown)
    message(SEND_ERROR "systemd warns: ${unknown}")
  endif()
  if(NOT told MATCHES "braidd is not executable")
    message(SEND_ERROR "systemd-analyze did not look at the units: ${told}")
  endif()
endif()

# Documents are those of an operator, and lead nowhere outside of what was installed.
set(documents ${PREFIX}/share/doc/braid)
file(GLOB_RECURSE files ${documents}/*.md)
set(count 0)
foreach(file ${files})
  file(READ ${file} text)
  cmake_path(GET file PARENT_PATH folder)
  string(REGEX REPLACE "\\]\\(https?:" "" text "${text}")
  string(REPLACE "](" "<link " text "${text}")  # a bracket in a list's item would hide where it ends
  string(REGEX MATCHALL "<link [a-zA-Z0-9_./-]+" links "${text}")
  foreach(link ${links})
    string(REPLACE "<link " "" link "${link}")
    math(EXPR count "${count} + 1")
    if(NOT EXISTS ${folder}/${link})
      message(SEND_ERROR "the installed ${file} names ${link}, which is not there")
    endif()
  endforeach()
endforeach()
foreach(file guide.md reference.md security.md)
  if(NOT EXISTS ${documents}/${file})
    message(SEND_ERROR "${file} is not installed")
  endif()
endforeach()
foreach(file design.md protocol.md CONTRIBUTING.md evaluation plots page.png)
  if(EXISTS ${documents}/${file})
    message(SEND_ERROR "${file} is installed, which nobody needs to run a gateway")
  endif()
endforeach()
if(count LESS 10)
  message(SEND_ERROR "only ${count} links of documents were looked at")
endif()
