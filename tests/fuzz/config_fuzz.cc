// libFuzzer target: any bytes, read as a configuration, end in an Error or in a configuration that can be described.
#include "kilter/base/error.h"
#include "kilter/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const kilter::Config config =
            kilter::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
        kilter::first_choices(config);
    } catch (const kilter::Error&) {  // the right answer to a bad file
    }
    return 0;
}
