# oneDNN: from the virtual environment, from the environment in which pip builds (both have the PyPI package
# onednn-devel-cpu-gomp), or from the system.
find_package(Python COMPONENTS Interpreter QUIET)
if(Python_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -c
        "from importlib.metadata import distribution as d; p = d('onednn-devel-cpu-gomp'); print(p.locate_file(next(f for f in p.files if f.name == 'dnnl-config.cmake')).resolve().parent)"
        OUTPUT_VARIABLE dnnl_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_package(dnnl 3.2 CONFIG QUIET HINTS ${dnnl_of_python} ${PROJECT_SOURCE_DIR}/.venv)
if(NOT dnnl_FOUND)
    message(FATAL_ERROR "oneDNN 3.2 or newer was not found: run 'make setup', or pass -Ddnnl_DIR=.../lib/cmake/dnnl")
endif()
message(STATUS "oneDNN: ${dnnl_DIR}")
