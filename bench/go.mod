module magpie.bench

go 1.19
