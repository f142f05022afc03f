# Included by CMake when llama-cpp-python is built (CMAKE_PROJECT_INCLUDE): leaves out llama.cpp's common library, which
# the Python bindings do not load and which takes half of the build. A normal variable wins over the cache entry that
# the package's own CMakeLists forces on.
set(LLAMA_BUILD_COMMON OFF)
