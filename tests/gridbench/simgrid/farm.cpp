// The pipeline model's cases in SimGrid: tasks through links to workers and back, one after the
// other or with equal shares. Stamps go to a file, to be held against those of the model.
//
//   farm TIMES READY STAMPS SHARING IN OUT TO BACK [INWARD OUTWARD]
//
// TIMES (of tasks) and READY (of workers) are doubles, in seconds; IN and OUT are bytes of each
// task; TO and BACK are bytes per second, between workers and the client, or the manager if there
// are INWARD and OUTWARD, from the client and to it. SHARING is `turn` or `evenly`.

#include <simgrid/s4u.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

struct Stamps {
  double submit, calc_in, calc_out, retrieve;
};

// A link between two hosts of its own: nothing else uses it.
class Hop {
public:
  Hop(sg::NetZone* zone, const std::string& name, double rate, bool in_turn)
      : from_(zone->create_host(name + "-from", 1e9)), to_(zone->create_host(name + "-to", 1e9)),
        turn_(in_turn ? sg::Mutex::create() : nullptr) {
    auto* link = zone->create_link(name, rate)->set_latency(0)->seal();
    zone->add_route(from_->get_netpoint(), to_->get_netpoint(), nullptr, nullptr,
                    {sg::LinkInRoute(link)}, true);
  }

  // Returns when so many bytes have passed.
  void move(double bytes) {
    if (bytes <= 0)
      return;
    if (turn_)
      turn_->lock();
    sg::Comm::sendto(from_, to_, static_cast<std::uint64_t>(bytes));
    if (turn_)
      turn_->unlock();
  }

private:
  sg::Host* from_;
  sg::Host* to_;
  sg::MutexPtr turn_;
};

// Tasks that wait; -1 says that no more come.
class Queue {
public:
  void push(int task) {
    tasks_.push_back(task);
    there_->release();
  }

  int pop() {
    there_->acquire();
    const int task = tasks_.front();
    tasks_.pop_front();
    return task;
  }

private:
  std::deque<int> tasks_;
  sg::SemaphorePtr there_ = sg::Semaphore::create(0);
};

static std::vector<double> read(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<double> values(static_cast<std::size_t>(file.tellg()) / sizeof(double));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(double)));
  return values;
}

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  if (argc != 9 && argc != 11) {
    std::fprintf(stderr, "farm TIMES READY STAMPS SHARING IN OUT TO BACK [INWARD OUTWARD]\n");
    return 2;
  }
  const std::vector<double> times = read(argv[1]), ready = read(argv[2]);
  const bool in_turn = std::string(argv[4]) == "turn", manager = argc == 11;
  const double in = std::stod(argv[5]), out = std::stod(argv[6]);
  const int tasks = static_cast<int>(times.size()), workers = static_cast<int>(ready.size());

  auto* zone = sg::create_full_zone("world");
  auto* host = zone->create_host("all", 1e9);
  Hop to(zone, "to", std::stod(argv[7]), in_turn), back(zone, "back", std::stod(argv[8]), in_turn);
  std::unique_ptr<Hop> inward, outward;
  if (manager) {
    inward = std::make_unique<Hop>(zone, "inward", std::stod(argv[9]), true);
    outward = std::make_unique<Hop>(zone, "outward", std::stod(argv[10]), true);
  }
  zone->seal();

  std::vector<Stamps> stamps(times.size());
  Queue waiting, done;

  sg::Actor::create("submit", host, [&] {
    for (int task = 0; task < tasks; task++) {
      if (manager) {
        inward->move(in);
        stamps[task].submit = sg::Engine::get_clock();
      }
      waiting.push(task);
    }
    for (int worker = 0; worker < workers; worker++)
      waiting.push(-1);
  });
  if (manager)
    sg::Actor::create("collect", host, [&] {
      for (int left = tasks; left > 0; left--) {
        const int task = done.pop();
        outward->move(out);
        stamps[task].retrieve = sg::Engine::get_clock();
      }
    });
  for (int worker = 0; worker < workers; worker++)
    sg::Actor::create("worker", host, [&, worker] {
      sg::this_actor::sleep_until(ready[worker]);
      for (int task; (task = waiting.pop()) >= 0;) {
        Stamps& own = stamps[task];
        if (!manager)
          own.submit = sg::Engine::get_clock();
        to.move(in);
        own.calc_in = sg::Engine::get_clock();
        sg::this_actor::sleep_for(times[task]);
        own.calc_out = sg::Engine::get_clock();
        back.move(out);
        if (manager)
          done.push(task);
        else
          own.retrieve = sg::Engine::get_clock();
      }
    });

  const auto begin = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.3f\n", took.count());

  std::ofstream file(argv[3], std::ios::binary);
  file.write(reinterpret_cast<const char*>(stamps.data()),
             static_cast<std::streamsize>(stamps.size() * sizeof(Stamps)));
  return file ? 0 : 1;
}
