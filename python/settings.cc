#include "settings.h"

#include <cmath>

#include <nanobind/stl/string.h>

#include "kilter/base/error.h"

namespace kilter::python {

Settings to_settings(nb::handle value, const std::string& where) {
    const auto made = [&](Settings settings) { return std::move(settings.at(where)); };
    if (value.is_none()) return made({});
    if (nb::isinstance<nb::bool_>(value)) return made(nb::cast<bool>(value));
    if (nb::isinstance<nb::int_>(value)) return made(nb::cast<int64_t>(value));
    if (nb::isinstance<nb::float_>(value)) return made(nb::cast<double>(value));
    if (nb::isinstance<nb::str>(value)) return made(nb::cast<std::string>(value));
    if (nb::isinstance<nb::dict>(value)) {
        Settings::Map map;
        for (const auto& [key, entry] : nb::borrow<nb::dict>(value)) {
            const std::string name = nb::cast<std::string>(nb::str(key));
            std::string place = where;
            if (!place.empty()) place += '.';
            map.emplace_back(name, to_settings(entry, place += name));
        }
        return made(std::move(map));
    }
    if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
        Settings::List list;
        for (const nb::handle entry : value) list.push_back(to_settings(entry, where));
        return made(std::move(list));
    }
    if (nb::hasattr(value, "__fspath__")) return made(nb::cast<std::string>(value.attr("__fspath__")()));
    if (nb::hasattr(value, "item") && nb::hasattr(value, "dtype"))
        return to_settings(value.attr("item")(), where);
    throw Error(where + ": a Python object of type " + nb::cast<std::string>(nb::str(value.type())) +
                " is no setting");
}

nb::object from_settings(const Settings& settings) {
    if (settings.is_null()) return nb::dict();
    if (settings.is_bool()) return nb::cast(settings.as_bool());
    if (settings.is_text()) return nb::cast(settings.as_text());
    if (settings.is_number()) {
        const double value = settings.as_number();
        if (std::abs(value) < 0x1p53 && value == std::trunc(value)) return nb::cast(settings.as_int());
        return nb::cast(value);
    }
    if (settings.is_list()) {
        nb::list list;
        for (const Settings& entry : settings.as_list()) list.append(from_settings(entry));
        return list;
    }
    nb::dict map;
    for (const auto& [name, entry] : settings.as_map()) map[name.c_str()] = from_settings(entry);
    return map;
}

Component to_component(nb::handle value, const std::string& where) {
    if (nb::isinstance<nb::str>(value)) return {nb::cast<std::string>(value), {}};
    const Settings settings = to_settings(value);
    if (!settings.is_map() || settings.as_map().size() != 1)
        throw Error(where + ": expected a name, or {name: settings}");
    const auto& [name, entry] = settings.as_map().front();
    return {name, entry};
}

}  // namespace kilter::python
