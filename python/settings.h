// Settings from what Python programs write them as: dicts, lists, numbers and text.
#pragma once

#include <nanobind/nanobind.h>

#include "kilter/base/settings.h"

namespace kilter::python {

namespace nb = nanobind;

//! `where` is what errors call this value. Throws Error for objects of other types.
Settings to_settings(nb::handle value, const std::string& where = {});
//! The other way round.
nb::object from_settings(const Settings& settings);
//! {"Name": settings} or "Name"; throws Error when there are several names.
Component to_component(nb::handle value, const std::string& where);

}  // namespace kilter::python
