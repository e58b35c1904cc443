// Long work answers signals.
#include "bindings.hpp"

namespace constrain::bind {
namespace {

unsigned long main_thread = 0;

// Only the main thread runs signal handlers; the others are never asked.
void check_signals() {
  if (PyThread_get_thread_ident() != main_thread) return;
  if (PyGILState_Check()) {
    if (PyErr_CheckSignals() != 0) throw Interrupted{};
    return;
  }
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw Interrupted{};
}

}  // namespace

void bind_signals(nb::module_&) {
  nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(thread.attr("ident"));
  set_host_poll(&check_signals);
}

}  // namespace constrain::bind
