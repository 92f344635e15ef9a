// Every metric, one file each: the functions that make them. make_metric knows them by name.
#pragma once

#include "kilter/metrics/metric.h"

namespace kilter::metrics {

using Made = std::unique_ptr<Metric>;

Made make_topk(const Settings& settings);
Made make_accuracy(const Settings& settings);
Made make_f1(const Settings& settings);
Made make_bag_f1(const Settings& settings);
Made make_roc(const Settings& settings);
Made make_glue(const Settings& settings);
Made make_mse(const Settings& settings);
Made make_mae(const Settings& settings);
Made make_rmse(const Settings& settings);
Made make_loss(const Settings& settings);
Made make_map(const Settings& settings);
Made make_coco_map(const Settings& settings);
Made make_voc_map(const Settings& settings);
Made make_miou(const Settings& settings);
Made make_squad(const Settings& settings);
Made make_bleu(const Settings& settings);

}  // namespace kilter::metrics
