package main

import (
	"context"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// forecaster is another program's server of tools, whose description is its first argument.
func forecaster() {
	s := mcp.NewServer(&mcp.Implementation{Name: "forecaster", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "get-forecast", Description: os.Args[1], InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if string(r.Params.Arguments) == `{"place":"crash"}` {
			os.Exit(3)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "rain, key " + os.Getenv("API_KEY")}}}, nil
	})
	s.Run(context.Background(), &mcp.StdioTransport{})
}
