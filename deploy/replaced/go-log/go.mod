module github.com/ipfs/go-log/v2

go 1.26.0

require go.uber.org/zap v1.28.0

replace go.uber.org/zap => ../zap
