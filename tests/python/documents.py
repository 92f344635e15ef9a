"""The code of the documents that kilter's interfaces come from, with only names changed. What they leave out is given as arguments."""

CNN_YAML = """
# cnn.yaml

version: 1.0

model:
  name: cnn
  framework: mxnet

quantization:
  calibration:
    sampling_size: 160 # number of samples for calibration

tuning:
  strategy:
    name: basic
  accuracy_criterion:
    relative: 0.01
  exit_policy:
    timeout: 0
  random_seed: 9527
"""

RESNET50V2_MSE_YAML = """
version: 1.0

model:
  name: resnet50_v2
  framework: mxnet

quantization:
  calibration:
    sampling_size: 192 # number of samples for calibration

tuning:
  strategy:
    name: mse
  accuracy_criterion:
    relative: 0.015
  exit_policy:
    timeout: 0
    max_trials: 500
  random_seed: 9527
"""

BLENDCNN_YAML = """
model:                                               # mandatory. lpot uses this model name and framework name to decide where to save tuning history and deploy yaml.
  name: blendcnn
  framework: pytorch

tuning:
  accuracy_criterion:
    relative:  0.01                                  # optional. default value is relative, other value is absolute. this example allows relative accuracy loss: 1%.
  exit_policy:
    timeout: 0                                       # optional. tuning timeout (seconds). default value is 0 which means early stop. combine with max_trials field to decide when to exit.
  random_seed: 9527                                  # optional. random seed for deterministic tuning.
"""

BERT_YAML = """
model:
  name: bert
  framework: tensorflow
  inputs: input_file, batch_size
  outputs: IteratorGetNext:3, unstack:0, unstack:1

quantization:
  calibration:
    sampling_size: 500
  model_wise:
    weight:
      granularity: per_channel
  op_wise: {
             '%s': {
               'activation':  {'dtype': ['fp32']},
               'weight':  {'dtype': ['fp32']},
             }
           }
tuning:
  accuracy_criterion:
    relative:  0.01
  exit_policy:
    timeout: 0
    max_trials: 100
  random_seed: 9527
"""


def tune_bert(graph, Dataset, collate_fn, eval_func, eval_writer, FLAGS):
    """Document 000: bert large on SQuAD."""
    from kilter.quantization import Quantization

    quantizer = Quantization("./bert.yaml")
    # we should change the dataloader to provide only once the file name and batch_size
    dataset = Dataset(eval_writer.filename, FLAGS.predict_batch_size)
    dataloader = quantizer.dataloader(dataset, collate_fn=collate_fn)
    q_model = quantizer(graph, q_dataloader=dataloader, eval_func=eval_func)
    return quantizer, q_model


def tune_blendcnn(model, Bert_DataLoader, data_iter, args, eval_func):
    """Document 001: BlendCNN on MRPC."""
    from kilter.experimental import Quantization

    dataloader = Bert_DataLoader(loader=data_iter, batch_size=args.batch_size)
    quantizer = Quantization(args.lpot_yaml)
    quantizer.model = model
    quantizer.calib_dataloader = dataloader
    quantizer.eval_func = eval_func
    q_model = quantizer()
    return quantizer, q_model


def tune_resnet18(mx, resnet18, batch_shape, records):
    """Document 003: the first example; only the path of the records is another one."""
    batch_size = 16
    mean_std = {
        "mean_r": 123.68,
        "mean_g": 116.779,
        "mean_b": 103.939,
        "std_r": 58.393,
        "std_g": 57.12,
        "std_b": 57.375,
    }

    data = mx.io.ImageRecordIter(
        path_imgrec=records,
        batch_size=batch_size,
        data_shape=batch_shape[1:],
        rand_crop=False,
        rand_mirror=False,
        shuffle=False,
        **mean_std,
    )
    data.batch_size = batch_size

    eval_samples = batch_size * 10

    def eval_func(model):
        data.reset()
        metric = mx.metric.Accuracy()
        for i, batch in enumerate(data):
            if i * batch_size >= eval_samples:
                break
            x = batch.data[0].as_in_context(mx.cpu())
            label = batch.label[0].as_in_context(mx.cpu())
            outputs = model.forward(x)
            metric.update(label, outputs)
        return metric.get()[1]

    from kilter.experimental import Quantization

    quantizer = Quantization("./cnn.yaml")
    quantizer.model = resnet18
    quantizer.calib_dataloader = data
    quantizer.eval_func = eval_func
    qnet = quantizer.fit().model
    return quantizer, qnet, eval_func


def tune_resnet50_v2(mx, net, dataset, batch_size):
    """Document 003: the second example; the transforms of the images are those of `dataset`."""
    val_data = mx.gluon.data.DataLoader(dataset, batch_size, shuffle=False)
    val_data.batch_size = batch_size

    def eval_func(model):
        metric = mx.gluon.metric.Accuracy()
        for x, label in val_data:
            output = model(x)
            metric.update(label, output)
        accuracy = metric.get()[1]
        return accuracy

    from kilter.experimental import Quantization

    quantizer = Quantization("resnet50v2_mse.yaml")
    quantizer.model = net
    quantizer.calib_dataloader = val_data
    quantizer.eval_func = eval_func
    qnet_inc = quantizer.fit().model
    print("INC finished")
    # You can save optimized model for the later use:
    qnet_inc.export("__quantized_with_inc")
    # You can see which configuration was applied by INC and which nodes were excluded from quantization,
    # to achieve given accuracy loss against floating point calculation.
    print(quantizer.strategy.best_qmodel.q_config["quant_cfg"])
    return quantizer, qnet_inc


def recover_resnet(f32_model, date, configuration_idx):
    """Document 003: a tip at its end; the folder has the name of this tool."""
    from kilter.utils.utility import recover

    quantized_model = recover(f32_model, f"kilter_workspace/{date}/history.snapshot", configuration_idx).model
    return quantized_model
