package conformance

import (
	"context"
	"fmt"
	"time"

	"agentsite/agents/tools"
	"agentsite/device"
)

// between is the pause of the fixtures between two notes.
const between = 50 * time.Millisecond

// runningFixtures say something before they end.
var runningFixtures = []fixture{
	{name: "test_tool_with_logging", description: "Logs three lines",
		call: func(ctx context.Context, c tools.Call) (tools.Result, error) {
			for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				c.Note(tools.Note{Level: "info", Message: line})
				if err := device.Sleep(ctx, between); err != nil {
					return tools.Result{}, err
				}
			}
			return text("logged three lines"), nil
		}},
	{name: "test_tool_with_progress", description: "Reports 0, 50 and 100 of 100", call: progress},
	{name: "test_streaming_elicitation", description: "Reports progress, and asks nothing of its own accord",
		call: progress},
	{name: "test_logging_tool", description: "Logs a line, which only a client that asked for it gets",
		call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			c.Note(tools.Note{Level: "info", Message: "this is a line"})
			return text("logged a line"), nil
		}},
	{name: "test_reconnection", description: "Takes a moment",
		call: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			return text("took a moment"), device.Sleep(ctx, between)
		}},
}

func progress(ctx context.Context, c tools.Call) (tools.Result, error) {
	for _, done := range []float64{0, 50, 100} {
		c.Note(tools.Note{Progress: done, Total: 100, Message: fmt.Sprintf("%.0f of 100", done)})
		if err := device.Sleep(ctx, between); err != nil {
			return tools.Result{}, err
		}
	}
	return text("done"), nil
}
