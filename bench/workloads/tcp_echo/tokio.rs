//! tcp_echo: see magpie.cc beside it.
use peer::{number, report};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SIZE: usize = 64;

async fn echo(mut conn: TcpStream) {
    let mut buffer = [0u8; SIZE];
    loop {
        let count = conn.read(&mut buffer).await.unwrap();
        if count == 0 {
            return;
        }
        conn.write_all(&buffer[..count]).await.unwrap();
    }
}

/// A connection, and how long each of its round trips took.
struct Client {
    conn: TcpStream,
    took_ns: Vec<u64>,
}

async fn talk(mut client: Client, rounds: usize) -> Client {
    let mut buffer = [0u8; SIZE];
    client.took_ns.clear();
    for _ in 0..rounds {
        let start = Instant::now();
        client.conn.write_all(&buffer).await.unwrap();
        client.conn.read_exact(&mut buffer).await.unwrap();
        client.took_ns.push(start.elapsed().as_nanos() as u64);
    }
    client
}

async fn all(clients: Vec<Client>, rounds: usize) -> Vec<Client> {
    let talking: Vec<_> = clients.into_iter().map(|c| tokio::spawn(talk(c, rounds))).collect();
    let mut back = Vec::new();
    for handle in talking {
        back.push(handle.await.unwrap());
    }
    back
}

fn main() {
    let connections = number("connections", 64);
    let rounds = number("rounds", 5_000);
    peer::run(async move {
        let start = Instant::now();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = TcpStream::connect(address).await.unwrap();
            client.set_nodelay(true).unwrap();
            clients.push(Client { conn: client, took_ns: Vec::with_capacity(rounds) });
            let (conn, _) = listener.accept().await.unwrap();
            conn.set_nodelay(true).unwrap();
            tokio::spawn(echo(conn));
        }
        let few = rounds / 10 + 1;
        clients = all(clients, few).await;
        let first = start.elapsed().as_nanos() as f64;
        let cpu_before = peer::cpu_ns();
        let start = Instant::now();
        clients = all(clients, rounds).await;
        let wall = start.elapsed().as_nanos() as f64;
        let cpu = peer::cpu_ns() - cpu_before;
        let trips = (connections * rounds) as f64;
        report("first_ns_per_op", first / (connections * few) as f64);
        report("ns_per_op", wall / trips);
        report("cpu_ns_per_op", cpu / trips);
        let mut took: Vec<u64> = clients.into_iter().flat_map(|client| client.took_ns).collect();
        took.sort_unstable();
        report("p99_us", took[took.len() * 99 / 100] as f64 / 1e3);
    });
}
