"""TensorFlow: a product and a compiled function on the CPU; a product on every GPU at level 4."""

import os


def measure(probe):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow

    probe.version(tensorflow.__version__)
    built = tensorflow.sysconfig.get_build_info()
    for name in ("cuda_version", "cudnn_version"):
        if built.get(name):
            probe.fact(name, built[name])
    multiply(probe, "", "CPU:0")
    square = tensorflow.function(lambda x: x * x + 1.0)
    probe.outcome("function", lambda: square(tensorflow.constant([1.0, 2.0])).numpy().tolist() == [2.0, 5.0])


def multiply(probe, suffix, device):
    import tensorflow

    left, right = integers(32, 32, 3), integers(32, 32, 5)

    def compute():
        with tensorflow.device(device):
            answer = tensorflow.matmul(*[tensorflow.constant(one, tensorflow.float32) for one in (left, right)])
        return is_equal(answer.numpy(), product(left, right))

    probe.outcome("matmul" + suffix, compute)


def measure_devices(probe):
    import tensorflow

    devices = tensorflow.config.list_logical_devices("GPU")
    for index, device in enumerate(devices):
        multiply(probe, " gpu:%d" % index, device.name)
    return [device.name for device in devices]
