// A shell command with its output caught.
#pragma once

#include <string>

namespace kilter::tensorflow {

struct ShellResult {
    int status = 0;  // as exit() was given it; 128 + the signal when one ended it
    std::string out, err;
};

//! Runs `command` with /bin/sh and waits for it.
ShellResult run_shell(const std::string& command);

}  // namespace kilter::tensorflow
