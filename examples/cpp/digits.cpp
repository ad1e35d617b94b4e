// Reads a handwritten digit with a compiled network.
//
//     aot compile ../digits/model.xml -o digits.o --header digits.hpp
//     c++ -std=c++17 -Wall -Wextra -Werror digits.cpp digits.o -o digits -pthread -ldl
//     ./digits ../digits/seven.npy
//
// or, with the network in a file of its own, which is the second argument:
//
//     aot compile ../digits/model.xml -o digits.so --header digits.hpp
//     c++ -std=c++17 -Wall -Wextra -Werror -DUSE_DLOPEN digits.cpp -o digits -ldl
//     ./digits ../digits/seven.npy ./digits.so
//
// With `--weights external` the file of weights is the next argument: ./digits.weights
#include "digits.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

static std::vector<float> read_image(const char *path) {
    std::vector<float> pixels(64);
    unsigned char head[10];
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char *>(head), sizeof head);
    file.seekg(head[8] + 256 * head[9], std::ios::cur);
    if (!file.read(reinterpret_cast<char *>(pixels.data()), 64 * sizeof(float)))
        throw aot::Error(std::string(path) + ": must be an image of 8 x 8 floats, got another file");
    return pixels;
}

int main(int count, char **arguments) {
    if (count < (AOT_DIGITS_EXTERNAL ? 4 : 2)) {
        std::fprintf(stderr, "usage: %s image.npy [digits.so [digits.weights]]\n", arguments[0]);
        return 2;
    }
    try {
#ifdef USE_DLOPEN
        aot::Model model(count > 2 ? arguments[2] : "./digits.so", AOT_DIGITS_NAME);
#else
        aot::Model model(AOT_DIGITS);
#endif
        if (count > 3)
            model.map_weights(arguments[3]);
        std::vector<float> pixels = read_image(arguments[1]);
        aot::Request request(model, aot::Pool(model, 2));
        std::vector<aot::Output> outputs = request.infer({aot::Input(pixels.data(), {1, 1, 8, 8})});
        const float *scores = outputs[0].as<float>();
        std::printf("%d\n", static_cast<int>(std::max_element(scores, scores + outputs[0].count()) - scores));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
