package conformance

import (
	"context"
	"fmt"
	"strings"

	"agentsite/agents"
	"agentsite/agents/tools"
)

// Prompts lists the catalog's prompts and those of the suite.
func (l Library) Prompts(ctx context.Context, p agents.Principal) ([]tools.Prompt, error) {
	list, err := l.Catalog.Prompts(ctx, p)
	return append(list, []tools.Prompt{
		{Name: "test_simple_prompt", Description: "Without arguments"},
		{Name: "test_prompt_with_arguments", Description: "With two arguments", Arguments: []tools.Argument{
			{Name: "arg1", Description: "The first argument", Required: true},
			{Name: "arg2", Description: "The second argument", Required: true},
		}},
		{Name: "test_prompt_with_embedded_resource", Description: "With a resource in it", Arguments: []tools.Argument{
			{Name: "resourceUri", Description: "The resource's URI", Required: true},
		}},
		{Name: "test_prompt_with_image", Description: "With a picture in it"},
		{Name: "test_input_required_result_prompt", Description: "Asks for a context first"},
	}...), err
}

// Prompt writes a prompt of the suite or of the catalog out.
func (l Library) Prompt(
	ctx context.Context, p agents.Principal, name string, args map[string]string, ex tools.Exchange,
) (tools.PromptResult, error) {
	switch name {
	case "test_simple_prompt":
		return says(tools.Content{Text: "This is a simple prompt for testing."}), nil
	case "test_prompt_with_arguments":
		text := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])
		return says(tools.Content{Text: text}), nil
	case "test_prompt_with_embedded_resource":
		return says(embedded(args["resourceUri"]), tools.Content{Text: "Please process the embedded resource above."}), nil
	case "test_prompt_with_image":
		return says(picture, tools.Content{Text: "Please analyze the image above."}), nil
	case "test_input_required_result_prompt":
		if about, ok := accepted[string](ex, "user_context", "context"); ok {
			return says(tools.Content{Text: "Context: " + about}), nil
		}
		ask := need("", field("user_context", "What is it about?", "context", "string"))
		return tools.PromptResult{NeedInput: ask.NeedInput}, nil
	}
	return l.Catalog.Prompt(ctx, p, name, args, ex)
}

func says(content ...tools.Content) (out tools.PromptResult) {
	for _, c := range content {
		out.Messages = append(out.Messages, tools.Message{Role: "user", Content: c})
	}
	return out
}

// completions are the values that the arguments of test_prompt_with_arguments are
// completed from.
var completions = []string{"paris", "park", "party", "test-value"}

// Complete completes an argument of a prompt of the suite or of the catalog.
func (l Library) Complete(
	ctx context.Context, p agents.Principal, ref tools.Reference, argument, prefix string,
) (tools.Completions, error) {
	if ref.Prompt != "test_prompt_with_arguments" {
		return l.Catalog.Complete(ctx, p, ref, argument, prefix)
	}
	list := []string{}
	for _, c := range completions {
		if strings.HasPrefix(c, prefix) {
			list = append(list, c)
		}
	}
	return tools.Completions{Values: list, Total: len(list)}, nil
}
