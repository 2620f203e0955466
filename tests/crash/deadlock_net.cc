// expect: all goroutines are asleep - deadlock!
// exit: 2
// expect: goroutine 1 \[chan receive\]
//
// There are connections, and the poller knows them, but nobody waits for one.
#include <magpie/magpie.h>
#include <magpie/net.h>

int main() {
  using namespace magpie;
  run([] {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    auto client =
        spawn([&] { return net::TcpConn::connect(listener.local_address().to_string()); });
    net::TcpConn server = listener.accept();
    net::TcpConn conn = client.join();
    std::byte byte{};
    auto reader = spawn([&] { server.read({&byte, 1}); });  // so that it is registered
    sleep_for(std::chrono::milliseconds(1));
    conn.write({&byte, 1});
    reader.join();
    Chan<int> never;
    (void)never.recv();
  });
}
