// Strategies written in Python: a class with run(search), registered under a name. A search that is over is an exception on both
// sides, and passes through the user's code in its Python form.
#include <map>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/tuning/strategy.h"
#include "session.h"
#include "settings.h"
#include "trials.h"

namespace kilter::python {
namespace {

using namespace nb::literals;

nb::handle search_over;  // the exception; lives as long as the module

//! What a Python strategy is given. It is of use only while run() lasts.
class SearchSession {
  public:
    explicit SearchSession(Search& search) : search_(&search) {}

    void end() { search_ = nullptr; }
    std::optional<SearchOver> over() const { return over_; }

    //! Calls `work` with the search, without the GIL; a search that is over raises the Python exception, now and from now on.
    template <class Work>
    auto with(const Work& work) {
        if (over_) raise();
        if (search_ == nullptr) throw Error("this search has ended");
        try {
            const nb::gil_scoped_release unlocked;
            return work(*search_);
        } catch (const SearchOver& over) {
            over_ = over;
        }
        raise();
    }
    const Search& search() const {
        if (search_ == nullptr) throw Error("this search has ended");
        return *search_;
    }

  private:
    [[noreturn]] static void raise() {
        PyErr_SetString(search_over.ptr(), "the search is over: let this exception pass");
        throw nb::python_error();
    }

    Search* search_;
    std::optional<SearchOver> over_;
};

nb::dict to_dict(const SearchSession& session, const Trial& trial) {
    return python::to_dict(trial, session.search().space().summary(trial.candidate));
}

nb::dict to_dict(const OperatorPlan& plan) {
    nb::dict option;
    option["precision"] = std::string(name(plan.precision));
    if (plan.precision != Precision::int8) return option;
    option["algorithm"] = std::string(name(plan.activation.algorithm));
    option["scheme"] = std::string(name(plan.activation.scheme));
    option["weights"] = std::string(name(plan.weights.granularity));
    option["bits"] = plan.weights.bits;
    return option;
}

std::string word(Role role) {
    switch (role) {
        case Role::must:
            return "must";
        case Role::eligible:
            return "eligible";
        case Role::attached:
            return "attached";
        case Role::table:
            return "table";
        case Role::transparent:
            break;
    }
    return "transparent";
}

nb::dict space_of(const SearchSession& session) {
    const Space& space = session.search().space();
    nb::list operators, variants, samples;
    for (const SpaceOperator& entry : space.operators) {
        nb::list options;
        for (const OperatorPlan& plan : entry.options) options.append(to_dict(plan));
        operators.append(nb::make_tuple(entry.name, entry.op, word(entry.role), options));
    }
    for (const Variant& variant : space.variants) {
        variants.append(variant.name);
        samples.append(variant.samples);
    }
    nb::dict result;
    result["operators"] = operators;
    result["variants"] = variants;
    result["samples"] = samples;
    result["asked_variants"] = space.asked_variants;
    return result;
}

Candidate candidate_of(const SearchSession& session, const std::vector<int>& options, int variant) {
    const Space& space = session.search().space();
    if (options.size() != space.operators.size())
        throw Error("a candidate of " + std::to_string(options.size()) + " operators; the space has " +
                    std::to_string(space.operators.size()));
    for (size_t i = 0; i < options.size(); ++i)
        if (options[i] < 0 || static_cast<size_t>(options[i]) >= space.operators[i].options.size())
            throw Error(space.operators[i].name + ": there is no option " + std::to_string(options[i]) +
                        "; it has " + std::to_string(space.operators[i].options.size()));
    if (variant < 0 || static_cast<size_t>(variant) >= space.variants.size())
        throw Error("there is no variant " + std::to_string(variant) + "; there are " +
                    std::to_string(space.variants.size()));
    return {options, variant};
}

Scoring scoring_of(const std::string& word) {
    if (word == "restored") return Scoring::restored;
    if (word == "own") return Scoring::own;
    throw Error("there are no scores '" + word + "'; expected restored or own");
}

class PythonStrategy : public Strategy {
  public:
    explicit PythonStrategy(nb::object object) : object_(std::move(object)) {}
    ~PythonStrategy() override {
        const nb::gil_scoped_acquire gil;
        object_.reset();
    }
    PythonStrategy(const PythonStrategy&) = delete;
    PythonStrategy& operator=(const PythonStrategy&) = delete;

    bool ends_by_itself() const override {
        const nb::gil_scoped_acquire gil;
        return nb::hasattr(object_, "ends_by_itself") && nb::cast<bool>(object_.attr("ends_by_itself"));
    }

    void run(Search& search) override {
        const nb::gil_scoped_acquire gil;
        auto* session = new SearchSession(search);
        const nb::object lent = nb::cast(session, nb::rv_policy::take_ownership);
        try {
            object_.attr("run")(lent);
        } catch (const nb::python_error& error) {
            session->end();
            if (session->over() && error.matches(search_over)) throw *session->over();
            throw;
        }
        session->end();
        if (session->over()) throw *session->over();  // the user's code caught it
    }

  private:
    nb::object object_;
};

// What makes strategies, by name; released when the interpreter ends, before the C++ side does.
std::map<std::string, PyObject*>& makers() {
    static std::map<std::string, PyObject*> map;
    return map;
}

void release_makers() {
    for (auto& [name, maker] : makers()) Py_CLEAR(maker);
}

void register_python(const std::string& name, const nb::callable& make) {
    PyObject*& kept = makers()[name];
    if (kept == nullptr) try {
            register_strategy(name, [name](const Settings& settings) -> std::unique_ptr<Strategy> {
                const nb::gil_scoped_acquire gil;
                const nb::handle maker(makers().at(name));
                return std::make_unique<PythonStrategy>(maker(from_settings(settings)));
            });
        } catch (...) {
            makers().erase(name);
            throw;
        }
    // Who runs a cell of a notebook again replaces the class.
    Py_XDECREF(kept);
    kept = nb::object(make).release().ptr();
}

}  // namespace

nb::dict to_dict(const Outcome& outcome) {
    nb::dict entry;
    entry["accuracy"] = outcome.accuracy;
    entry["samples"] = outcome.samples;
    entry["rejected_early"] = outcome.rejected_early;
    entry["milliseconds"] = outcome.cost.milliseconds;
    entry["bytes"] = static_cast<int64_t>(outcome.cost.bytes);
    entry["memory"] = static_cast<int64_t>(outcome.cost.memory);
    entry["seconds"] = outcome.seconds;
    return entry;
}

nb::dict to_dict(const Trial& trial, const std::string& summary) {
    nb::dict entry = to_dict(trial.outcome);
    entry["number"] = trial.number;
    entry["options"] = trial.candidate.options;
    entry["variant"] = trial.candidate.variant;
    entry["reason"] = trial.reason;
    entry["operators"] = summary;
    entry["met"] = trial.met;
    entry["excess"] = trial.excess;
    entry["objective"] = trial.objective;
    return entry;
}

void bind_strategies(nb::module_& module) {
    search_over = PyErr_NewException("kilter.SearchOver", PyExc_BaseException, nullptr);
    module.attr("SearchOver") = search_over;
    nb::class_<SearchSession>(module, "SearchSession")
        .def_prop_ro("space", &space_of)
        .def_prop_ro("baseline",
                     [](const SearchSession& self) { return python::to_dict(self.search().baseline()); })
        .def_prop_ro("trials",
                     [](const SearchSession& self) {
                         nb::list list;
                         for (const Trial& trial : self.search().trials()) list.append(to_dict(self, trial));
                         return list;
                     })
        .def_prop_ro("best",
                     [](const SearchSession& self) -> nb::object {
                         const Trial* best = self.search().best();
                         return best == nullptr ? nb::none() : nb::object(to_dict(self, *best));
                     })
        .def_prop_ro("trials_left", [](const SearchSession& self) { return self.search().trials_left(); })
        .def_prop_ro("elapsed", [](const SearchSession& self) { return self.search().elapsed(); })
        .def("draw",
             [](SearchSession& self) { return self.with([](Search& search) { return search.random()(); }); })
        .def(
            "evaluate",
            [](SearchSession& self, const std::vector<int>& options, int variant, const std::string& reason,
               bool complete) {
                const Candidate candidate = candidate_of(self, options, variant);
                const Trial* trial =
                    self.with([&](Search& search) { return &search.evaluate(candidate, reason, complete); });
                return to_dict(self, *trial);
            },
            "options"_a, "variant"_a, "reason"_a, "complete"_a)
        .def(
            "scores",
            [](SearchSession& self, const std::string& word, const std::vector<int>& options, int variant) {
                const Scoring scoring = scoring_of(word);
                const Candidate base = candidate_of(self, options, variant);
                return self.with([&](Search& search) { return search.scores(scoring, base); });
            },
            "scoring"_a, "options"_a, "variant"_a)
        .def(
            "plan",
            [](const SearchSession& self, const std::vector<int>& options, int variant) {
                return self.search().space().plan(candidate_of(self, options, variant)).json();
            },
            "options"_a, "variant"_a)
        .def("gains",
             [](SearchSession& self) { return self.with([](Search& search) { return search.gains(); }); })
        .def(
            "output_error",
            [](SearchSession& self, const std::vector<int>& options, int variant) {
                const Candidate candidate = candidate_of(self, options, variant);
                return self.with([&](Search& search) { return search.output_error(candidate); });
            },
            "options"_a, "variant"_a);
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&release_makers));
    module.def("register_strategy", &register_python, "name"_a, "make"_a);
    module.def("strategy_names", &strategy_names);
}

}  // namespace kilter::python
