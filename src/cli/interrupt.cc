#include "cli/interrupt.h"

#include <csignal>

namespace kilter::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void note(int) { interrupted = 1; }

void set_handler(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptScope::InterruptScope() { set_handler(note); }
InterruptScope::~InterruptScope() { set_handler(SIG_DFL); }

void InterruptScope::check() {
    if (interrupted != 0) throw Interrupted();
}

}  // namespace kilter::cli
