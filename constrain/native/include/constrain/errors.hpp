// Exceptions of the core; the binding translates them to the classes of constrain/errors.py.
#pragma once

#include <stdexcept>
#include <string>

namespace constrain {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct LimitError : Error {            // LimitExceededError
  std::string limit;
  LimitError(const std::string& message, std::string name) : Error(message), limit(std::move(name)) {}
};
// Thrown by poll(), so in the middle of anything.
struct DeadlineError : LimitError {
  using LimitError::LimitError;
};
struct UnsupportedFeature : Error {    // UnsupportedError
  using Error::Error;
};
struct UnsatisfiableConstraint : Error {  // UnsatisfiableError
  using Error::Error;
};

}  // namespace constrain
