//! The server of the HTTP benchmarks, see magpie.cc beside it.
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Request, Response, Server};
use std::convert::Infallible;

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    let response = Response::builder().header("Content-Type", "text/plain");
    Ok(response.body(Body::from("hello, world\n")).unwrap())
}

fn main() {
    let procs = peer::number("procs", 2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(procs)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let make = make_service_fn(|_| async { Ok::<_, Infallible>(service_fn(hello)) });
        let server = Server::bind(&([127, 0, 0, 1], 0).into()).tcp_nodelay(true).serve(make);
        println!("port={}", server.local_addr().port());
        server.await.unwrap();
    });
}
