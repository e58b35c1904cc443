// The module constrain._native.
#include "bindings.hpp"

NB_MODULE(_native, m) {
  m.attr("__doc__") = "Native core of constrain; use the names of the package instead.";
  constrain::bind::bind_errors(m);
  constrain::bind::bind_vocabulary(m);
  constrain::bind::bind_constraint(m);
  constrain::bind::bind_logits(m);
  constrain::bind::bind_analysis(m);
  constrain::bind::bind_signals(m);
}
