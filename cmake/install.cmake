# Two things to install: component `python` (package, extension, command; what `make` and `pip install .` use) and
# component `cpp` (headers, library, CMake package).
include(GNUInstallDirs)

install(TARGETS kilter EXPORT kilter-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp EXCLUDE_FROM_ALL)
install(DIRECTORY include/kilter DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp EXCLUDE_FROM_ALL)
install(EXPORT kilter-targets FILE kilter-config.cmake NAMESPACE kilter::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kilter COMPONENT cpp EXCLUDE_FROM_ALL)

if(NOT KILTER_PYTHON)
    return()
endif()

set(python_version python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
if(SKBUILD)  # pip puts the parts of a wheel where they belong
    set(package_dir kilter)
    set(command_dir ${SKBUILD_SCRIPTS_DIR})
else()
    set(package_dir lib/${python_version}/site-packages/kilter)
    set(command_dir bin)
endif()

# The library lies in the package; oneDNN's own package puts libdnnl.so.3 into <prefix>/lib, three folders up.
# libfmt and the libraries for images, YAML and Unicode come along: the package needs nothing of the system but the C++ runtime.
set(rpath "$ORIGIN:$ORIGIN/../../..")
foreach(dir lib lib64)
    foreach(site site-packages dist-packages)
        list(APPEND command_rpath "$ORIGIN/../${dir}/${python_version}/${site}/kilter")
    endforeach()
endforeach()
set_target_properties(kilter PROPERTIES INSTALL_RPATH "${rpath}")
set_target_properties(_kilter PROPERTIES INSTALL_RPATH "${rpath}")
list(JOIN command_rpath ":" command_rpath)
set_target_properties(kilter_cli PROPERTIES INSTALL_RPATH "${command_rpath}")

install(TARGETS kilter LIBRARY DESTINATION ${package_dir} COMPONENT python NAMELINK_SKIP)
install(TARGETS _kilter LIBRARY DESTINATION ${package_dir} COMPONENT python)
install(TARGETS kilter_cli RUNTIME DESTINATION ${command_dir} COMPONENT python)
install(FILES $<TARGET_FILE:fmt::fmt> DESTINATION ${package_dir} RENAME $<TARGET_SONAME_FILE_NAME:fmt::fmt> COMPONENT python)
find_library(YAML_CPP_FILE yaml-cpp REQUIRED)
foreach(library ${JPEG_LIBRARY_RELEASE} ${PNG_LIBRARY_RELEASE} ${YAML_CPP_FILE} ${UTF8PROC_LIBRARY})
    file(REAL_PATH ${library} library)
    cmake_path(GET library FILENAME file)
    # The name that programs look for: one number after .so, two where minor releases break the interface.
    if(file MATCHES "^(libyaml-cpp\\.so\\.[0-9]+\\.[0-9]+|lib[a-z0-9]+\\.so\\.[0-9]+)")
        install(FILES ${library} DESTINATION ${package_dir} RENAME ${CMAKE_MATCH_1} COMPONENT python)
    endif()
endforeach()
install(DIRECTORY python/kilter/ DESTINATION ${package_dir} COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "*.json" PATTERN "__pycache__" EXCLUDE)
