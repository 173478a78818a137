// Package conformance is a hosted agent with the tools, resources and prompts that the public MCP
// conformance suite calls, by the suite's names. So the suite tests the carriers, checks and
// adapters of a site.
//
// Everything in it but this page needs the build tag "conformance". It may import only the
// vocabulary of package agents.
//
// Suite: https://github.com/modelcontextprotocol/conformance
package conformance
