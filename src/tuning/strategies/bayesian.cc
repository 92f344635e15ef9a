// bayesian: a Gaussian process over the choices (Matérn 5/2, each operator a real number that is rounded down to an option) and an
// upper confidence bound that says where to look next. Floating point is among the options of every operator.
#include <algorithm>
#include <cmath>

#include "tuning/strategies/list.h"
#include "tuning/strategies/sampling.h"

namespace kilter {
namespace {

constexpr double kNoise = 1e-6;      // on the diagonal: makes equal points harmless
constexpr double kKappa = 2.576;     // how much not knowing is worth: 99 % of a normal distribution
constexpr int kProbes = 2000;        // random points at which the bound is looked at
constexpr int kClimbers = 5;         // of these the best are improved, one operator at a time
constexpr int kChanges = 200;        // changes each of them tries
constexpr size_t kMostPoints = 400;  // the time grows with the cube; the latest trials count

using Point = std::vector<double>;  // each coordinate in [0, 1)

double matern(const Point& a, const Point& b, double length) {
    double square = 0;
    for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
    const double r = std::sqrt(5 * square) / length;
    return (1 + r + r * r / 3) * std::exp(-r);
}

class GaussianProcess {
  public:
    //! Chooses the length scale under which the values are likeliest.
    GaussianProcess(std::vector<Point> points, const std::vector<double>& values)
        : points_(std::move(points)) {
        for (const double value : values) mean_ += value / static_cast<double>(values.size());
        double variance = 0;
        for (const double value : values) variance += (value - mean_) * (value - mean_);
        deviation_ = std::sqrt(std::max(variance / static_cast<double>(values.size()), 1e-12));
        std::vector<double> scaled;
        for (const double value : values) scaled.push_back((value - mean_) / deviation_);
        const double diagonal = std::sqrt(static_cast<double>(points_.front().size()));
        double best = -INFINITY;
        double best_length = diagonal;
        for (const double share : {0.05, 0.1, 0.2, 0.4, 0.8, 1.6}) {
            const double likelihood = fit(scaled, share * diagonal);
            if (likelihood <= best) continue;
            best = likelihood;
            best_length = share * diagonal;
        }
        fit(scaled, best_length);
    }

    double upper_bound(const Point& point) const {
        const size_t n = points_.size();
        std::vector<double> k(n);
        double mean = 0;
        for (size_t i = 0; i < n; ++i) {
            k[i] = matern(point, points_[i], length_);
            mean += k[i] * weights_[i];
        }
        double explained = 0;  // |L⁻¹ k|²
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < i; ++j) k[i] -= factor_[i * n + j] * k[j];
            k[i] /= factor_[i * n + i];
            explained += k[i] * k[i];
        }
        return mean_ + deviation_ * (mean + kKappa * std::sqrt(std::max(0.0, 1 - explained)));
    }

  private:
    // Factorizes the covariance, solves for the weights; returns the log likelihood without its constant.
    double fit(const std::vector<double>& values, double length) {
        const size_t n = points_.size();
        length_ = length;
        factor_.assign(n * n, 0);
        double log_determinant = 0;
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j <= i; ++j) {
                double sum = matern(points_[i], points_[j], length) + (i == j ? kNoise : 0);
                for (size_t k = 0; k < j; ++k) sum -= factor_[i * n + k] * factor_[j * n + k];
                factor_[i * n + j] =
                    i == j ? std::sqrt(std::max(sum, kNoise * kNoise)) : sum / factor_[j * n + j];
                if (i == j) log_determinant += 2 * std::log(factor_[i * n + i]);
            }
        weights_ = values;
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < i; ++j) weights_[i] -= factor_[i * n + j] * weights_[j];
            weights_[i] /= factor_[i * n + i];
        }
        double fit = 0;
        for (const double weight : weights_) fit += weight * weight;
        for (size_t i = n; i-- > 0;) {
            for (size_t j = i + 1; j < n; ++j) weights_[i] -= factor_[j * n + i] * weights_[j];
            weights_[i] /= factor_[i * n + i];
        }
        return -0.5 * (fit + log_determinant);
    }

    std::vector<Point> points_;
    double mean_ = 0, deviation_ = 1, length_ = 1;
    std::vector<double> factor_, weights_;
};

class Bayesian : public Strategy {
  public:
    void run(Search& search) override {
        search.evaluate(search.space().first(), "everything at its first choice");
        while (true) {
            const bool learned = distinct(search);
            const std::optional<Candidate> candidate = learned ? propose(search) : new_candidate(search);
            if (!candidate) return;
            search.evaluate(*candidate, learned ? "highest upper bound" : "drawn at random");
        }
    }

  private:
    static bool distinct(const Search& search) {
        return std::ranges::any_of(search.trials(), [&](const Trial& trial) {
            return utility(trial) != utility(search.trials().front());
        });
    }

    static Point to_point(const Space& space, const Candidate& candidate) {
        Point point(space.operators.size() + 1);
        for (size_t i = 0; i < space.operators.size(); ++i)
            point[i] = (candidate.options[i] + 0.5) / static_cast<double>(space.operators[i].options.size());
        point.back() = (candidate.variant + 0.5) / static_cast<double>(space.variants.size());
        return point;
    }

    static std::optional<Candidate> propose(Search& search) {
        const Space& space = search.space();
        std::vector<Point> points;
        std::vector<double> values;
        const auto& trials = search.trials();
        for (size_t i = trials.size() - std::min(trials.size(), kMostPoints); i < trials.size(); ++i) {
            points.push_back(to_point(space, trials[i].candidate));
            values.push_back(utility(trials[i]));
        }
        const GaussianProcess process(std::move(points), values);

        struct Probe {
            Candidate candidate;
            double bound;
        };
        std::vector<Probe> probes;
        for (int i = 0; i < kProbes; ++i) {
            Candidate candidate = random_candidate(search);
            const double bound = process.upper_bound(to_point(space, candidate));
            probes.push_back({std::move(candidate), bound});
        }
        std::ranges::stable_sort(probes, std::greater<>(), &Probe::bound);
        probes.resize(kClimbers);
        for (Probe& probe : probes)
            for (int change = 0; change < kChanges && !space.operators.empty(); ++change) {
                Candidate candidate = probe.candidate;
                const size_t index = search.random()() % candidate.options.size();
                candidate.options[index] =
                    static_cast<int>(search.random()() % space.operators[index].options.size());
                const double bound = process.upper_bound(to_point(space, candidate));
                if (bound > probe.bound) probe = {std::move(candidate), bound};
            }
        // What was evaluated before teaches nothing: the best probe that is new, or a random candidate.
        std::ranges::stable_sort(probes, std::greater<>(), &Probe::bound);
        for (Probe& probe : probes)
            if (!is_known(search, probe.candidate)) return std::move(probe.candidate);
        return new_candidate(search);
    }
};

}  // namespace

std::unique_ptr<Strategy> make_bayesian(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Bayesian>();
}

}  // namespace kilter
