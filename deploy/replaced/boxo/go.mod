module github.com/ipfs/boxo

go 1.26.0
