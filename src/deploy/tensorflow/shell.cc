#include "deploy/tensorflow/shell.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"

extern char** environ;

namespace kilter::tensorflow {
namespace {

struct Pipe {
    int read_end = -1, write_end = -1;

    Pipe() {
        std::array<int, 2> ends{};
        require(::pipe2(ends.data(), O_CLOEXEC) == 0, "cannot make a pipe: {}", std::strerror(errno));
        read_end = ends[0];
        write_end = ends[1];
    }
    ~Pipe() {
        close_end(read_end);
        close_end(write_end);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    static void close_end(int& end) {
        if (end >= 0) ::close(end);
        end = -1;
    }
};

// Reads what is there; false at the end of the stream.
bool drain(int descriptor, std::string& text) {
    std::array<char, 1 << 16> buffer{};
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    text.append(buffer.data(), static_cast<size_t>(count));
    return count > 0;
}

}  // namespace

ShellResult run_shell(const std::string& command) {
    Pipe out;
    Pipe err;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err.write_end, STDERR_FILENO);
    std::string shell = "sh";
    std::string option = "-c";
    std::string text = command;
    std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
    pid_t child = 0;
    const int problem = ::posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    require(problem == 0, "cannot start a shell: {}", std::strerror(problem));
    Pipe::close_end(out.write_end);
    Pipe::close_end(err.write_end);
    ShellResult result;
    while (out.read_end >= 0 || err.read_end >= 0) {
        std::array<pollfd, 2> polled{pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0}};
        if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
        if (polled[0].revents != 0 && !drain(out.read_end, result.out)) Pipe::close_end(out.read_end);
        if (polled[1].revents != 0 && !drain(err.read_end, result.err)) Pipe::close_end(err.read_end);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

}  // namespace kilter::tensorflow
