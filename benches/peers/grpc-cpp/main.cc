// gRPC C++'s greeter with the callback API, as its documentation shows it, with a stream of replies beside it.
#include <iostream>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "helloworld.grpc.pb.h"

using grpc::CallbackServerContext;
using helloworld::HelloManyTimesRequest;
using helloworld::HelloReply;
using helloworld::HelloRequest;

class Greeter final : public helloworld::Greeter::CallbackService {
  grpc::ServerUnaryReactor* SayHello(CallbackServerContext* context, const HelloRequest* request,
                                     HelloReply* reply) override {
    reply->set_message("Hello " + request->name());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  class Replies final : public grpc::ServerWriteReactor<HelloReply> {
   public:
    explicit Replies(const HelloManyTimesRequest* request) : left_(request->count()) {
      reply_.set_message("Hello " + request->name());
      Next();
    }
    void OnWriteDone(bool ok) override { ok ? Next() : Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    void Next() {
      if (left_ == 0) return Finish(grpc::Status::OK);
      left_--;
      StartWrite(&reply_);
    }
    HelloReply reply_;
    unsigned left_;
  };

  grpc::ServerWriteReactor<HelloReply>* SayHelloManyTimes(CallbackServerContext*,
                                                          const HelloManyTimesRequest* request) override {
    return new Replies(request);
  }
};

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "expected --listen ADDRESS\n";
    return 1;
  }
  Greeter greeter;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(arguments[2], grpc::InsecureServerCredentials());
  builder.RegisterService(&greeter);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  server->Wait();
}
