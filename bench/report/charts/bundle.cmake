# Installs the packages of package-lock.json into FOLDER, and bundles charts.js with them into SCRIPT. Without network
# it leaves no script, and fails only if WANTED is ON.
function(give_up why)
  file(REMOVE ${SCRIPT})
  if(NOT WANTED STREQUAL AUTO)
    message(FATAL_ERROR "The charts of tonari report were not made: ${why}")
  endif()
  file(TOUCH ${STAMP})
  message("Charts of tonari report will be plain: ${why}; remove ${STAMP} to try again")
endfunction()

foreach(file IN ITEMS package.json package-lock.json charts.js)
  configure_file(${SOURCE}/${file} ${FOLDER}/${file} COPYONLY)
endforeach()
execute_process(COMMAND ${NPM} ci --no-audit --no-fund --ignore-scripts --prefer-offline --fetch-retries=0
                        --fetch-timeout=20000
                WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE error TIMEOUT 120)
if(failed)
  give_up("npm ci failed")
  return()
endif()
execute_process(COMMAND ${FOLDER}/node_modules/.bin/esbuild charts.js --bundle --minify --format=iife --charset=ascii
                        --legal-comments=inline --target=es2020 --outfile=${SCRIPT} --log-level=error
                WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE failed ERROR_VARIABLE error TIMEOUT 120)
if(failed)
  give_up("esbuild failed: ${error}")
  return()
endif()
file(TOUCH ${STAMP})
