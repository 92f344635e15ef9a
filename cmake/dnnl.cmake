# oneDNN: from the virtual environment (PyPI onednn-devel-cpu-gomp), from the build environment of pip, or from the system.
find_package(dnnl 3.2 CONFIG QUIET HINTS ${PROJECT_SOURCE_DIR}/.venv)
if(NOT dnnl_FOUND)
    find_package(Python3 QUIET COMPONENTS Interpreter)
    if(Python3_FOUND)
        execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.prefix)"
                        OUTPUT_VARIABLE python_prefix OUTPUT_STRIP_TRAILING_WHITESPACE)
        find_package(dnnl 3.2 CONFIG QUIET HINTS ${python_prefix})
    endif()
endif()
if(NOT dnnl_FOUND)
    message(FATAL_ERROR "oneDNN 3.2 or newer was not found: run 'make setup', or pass -Ddnnl_DIR=.../lib/cmake/dnnl")
endif()
message(STATUS "oneDNN: ${dnnl_DIR}")
