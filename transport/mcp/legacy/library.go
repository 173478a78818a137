package legacy

import (
	"context"

	"agentsite/agents/tools"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func (h *host) addResource(r tools.Resource) {
	h.sdk.AddResource(&sdk.Resource{
		URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIME,
	}, h.read)
}

func (h *host) addTemplate(t tools.Template) {
	h.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Description, MIMEType: t.MIME,
	}, h.read)
}

func (h *host) read(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	list, err := h.srv.Library.ReadResource(ctx, h.who, req.Params.URI)
	if err == tools.ErrNotFound {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	} else if err != nil {
		return nil, asError(err)
	}
	out := &sdk.ReadResourceResult{Contents: make([]*sdk.ResourceContents, len(list))}
	for i, c := range list {
		out.Contents[i] = contents(c)
	}
	return out, nil
}

func (h *host) addPrompt(p tools.Prompt) {
	out := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		out.Arguments = append(out.Arguments, &sdk.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
	}
	h.sdk.AddPrompt(out, h.prompt)
}

func (h *host) prompt(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	var res tools.PromptResult
	err := h.rounds(ctx, req.Session, func(ex tools.Exchange) (*tools.NeedInput, error) {
		var err error
		res, err = h.srv.Library.Prompt(ctx, h.who, req.Params.Name, req.Params.Arguments, ex)
		return res.NeedInput, err
	})
	if err != nil {
		return nil, asError(err)
	}
	out := &sdk.GetPromptResult{Description: res.Description, Messages: make([]*sdk.PromptMessage, len(res.Messages))}
	for i, m := range res.Messages {
		out.Messages[i] = &sdk.PromptMessage{Role: sdk.Role(m.Role), Content: content(m.Content)}
	}
	return out, nil
}

func (h *host) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	ref := tools.Reference{Prompt: req.Params.Ref.Name, URITemplate: req.Params.Ref.URI}
	all, err := h.srv.Library.Complete(ctx, h.who, ref, req.Params.Argument.Name, req.Params.Argument.Value)
	if err != nil {
		return nil, asError(err)
	}
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: all.Values, Total: all.Total, HasMore: all.More}}, nil
}
