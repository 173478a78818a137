package mcp

import (
	"context"

	"agentsite/agents/tools"
	"agentsite/transport/mcp/view"
	"agentsite/transport/rpc"
)

func (s *Server) resourcesList(ctx context.Context, r request, p *listParams) (any, error) {
	list, err := s.Library.Resources(ctx, r.who)
	if err != nil {
		return nil, err
	}
	return resourcesResult{s.completed(), cached(cacheFor), list}, p.whole()
}

func (s *Server) templatesList(ctx context.Context, r request, p *listParams) (any, error) {
	list, err := s.Library.Templates(ctx, r.who)
	if err != nil {
		return nil, err
	}
	return templatesResult{s.completed(), cached(cacheFor), list}, p.whole()
}

// resourcesRead gives no time to keep a reading for: the next may differ.
func (s *Server) resourcesRead(ctx context.Context, r request, p *readParams) (any, error) {
	if view.Is(p.URI) {
		all, err := s.catalog.Tools(ctx, r.who)
		if err != nil {
			return nil, err
		}
		if view.Of(all) {
			return readResult{Result: s.completed(), Cached: cached(cacheFor), Contents: []resourceContents{
				{URI: p.URI, MIME: view.MIME, Text: &view.HTML, Meta: view.Contents()},
			}}, nil
		}
	}
	list, err := s.Library.ReadResource(ctx, r.who, p.URI)
	if err == tools.ErrNotFound {
		e := rpc.Errorf(rpc.CodeInvalidParams, "Resource not found: %.120q; resources/list names them", p.URI)
		e.Data = map[string]string{"uri": p.URI}
		return nil, e
	} else if err != nil {
		return nil, err
	}
	out := readResult{Result: s.completed(), Cached: cached(0), Contents: make([]resourceContents, len(list))}
	for i, c := range list {
		out.Contents[i] = contents(c)
	}
	return out, nil
}

func (s *Server) promptsList(ctx context.Context, r request, p *listParams) (any, error) {
	list, err := s.Library.Prompts(ctx, r.who)
	if err != nil {
		return nil, err
	}
	return promptsResult{s.completed(), cached(cacheFor), list}, p.whole()
}

func (s *Server) promptsGet(ctx context.Context, r request, p *promptParams) (any, error) {
	ex, err := s.exchange(r, &p.Round, p.Name, rpc.Raw{})
	if err != nil {
		return nil, err
	}
	res, err := s.Library.Prompt(ctx, r.who, p.Name, p.Arguments, ex)
	switch {
	case err == tools.ErrNotFound:
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Unknown prompt: %.60q; prompts/list names them", p.Name)
	case err != nil:
		return nil, err
	case res.NeedInput != nil:
		return s.inputRequired(r, res.NeedInput, p.Name, rpc.Raw{})
	}
	out := promptResult{Result: s.completed(), Description: res.Description, Messages: make([]promptMessage, len(res.Messages))}
	for i, m := range res.Messages {
		out.Messages[i] = promptMessage{m.Role, content(m.Content)}
	}
	return out, nil
}

func (s *Server) complete(ctx context.Context, r request, p *completeParams) (any, error) {
	var ref tools.Reference
	switch p.Ref.Type {
	case "ref/prompt":
		ref.Prompt = p.Ref.Name
	case "ref/resource":
		ref.URITemplate = p.Ref.URI
	default:
		return nil, rpc.Errorf(rpc.CodeInvalidParams, `params: ref.type must be "ref/prompt" or "ref/resource"`)
	}
	all, err := s.Library.Complete(ctx, r.who, ref, p.Argument.Name, p.Argument.Value)
	if err != nil {
		return nil, err
	}
	return completeResult{s.completed(), all}, nil
}
