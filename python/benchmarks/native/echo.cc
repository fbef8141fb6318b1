// gRPC beside ours: a server whose function does nothing, and a client that calls it again and again.
//
//   echo serve ADDRESS CREDENTIALS          prints `ready`; ends with its input
//   echo calls ADDRESS SECONDS CREDENTIALS  as `load calls`, without the counts of times
//
// CREDENTIALS is a folder with certificate.pem, key.pem and authority.pem of either end, or `none`.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "echo.grpc.pb.h"

static std::string file(const std::string &folder, const char *name) {
    std::ifstream in(folder + "/" + name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

class Service final : public Echo::CallbackService {
    grpc::ServerUnaryReactor *Null(grpc::CallbackServerContext *context, const Nothing *, Nothing *) override {
        auto *reactor = context->DefaultReactor();
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
};

static int serve(const std::string &address, const std::string &folder) {
    auto credentials = grpc::InsecureServerCredentials();
    if (folder != "none") {
        grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
        options.pem_root_certs = file(folder, "authority.pem");
        options.pem_key_cert_pairs.push_back({file(folder, "key.pem"), file(folder, "certificate.pem")});
        credentials = grpc::SslServerCredentials(options);
    }
    Service service;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials);
    builder.RegisterService(&service);
    auto server = builder.BuildAndStart();
    if (!server) return 1;
    std::cout << "ready" << std::endl;
    std::cin.get();
    server->Shutdown();
    return 0;
}

static int calls(const std::string &address, double seconds, const std::string &folder) {
    auto credentials = grpc::InsecureChannelCredentials();
    if (folder != "none") {
        credentials = grpc::SslCredentials(
            {file(folder, "authority.pem"), file(folder, "key.pem"), file(folder, "certificate.pem")});
    }
    auto stub = Echo::NewStub(grpc::CreateChannel(address, credentials));
    auto call = [&stub] {
        grpc::ClientContext context;
        Nothing in, out;
        return stub->Null(&context, in, &out);
    };
    if (auto status = call(); !status.ok()) {
        std::cerr << status.error_message() << std::endl;
        return 1;
    }
    std::cout << "ready" << std::endl;
    std::string line;
    if (!std::getline(std::cin, line)) return 1;
    long done = 0, failed = 0;
    double longest = 0;
    auto since = [](auto begin) {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    auto begin = std::chrono::steady_clock::now();
    double end = 0;
    while (end < seconds) {
        double before = end;
        (call().ok() ? done : failed)++;
        end = since(begin);
        if (end - before > longest) longest = end - before;
    }
    std::printf("{\"calls\": %ld, \"failed\": %ld, \"seconds\": %.6f, \"longest\": %.6f}\n", done, failed, end, longest);
    return 0;
}

int main(int argc, char **argv) {
    std::string what = argc > 1 ? argv[1] : "";
    if (what == "serve" && argc == 4) return serve(argv[2], argv[3]);
    if (what == "calls" && argc == 5) return calls(argv[2], std::atof(argv[3]), argv[4]);
    std::cerr << "usage: echo serve ADDRESS CREDENTIALS\n       echo calls ADDRESS SECONDS CREDENTIALS\n";
    return 2;
}
