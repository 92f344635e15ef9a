// The version of kilter, in one place: CMakeLists.txt and pyproject.toml read it here.
#pragma once

#define KILTER_VERSION "0.1.0"
