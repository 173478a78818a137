// Package conformance is what the public MCP conformance suite asks a server to
// offer, by the suite's names, as one more hosted agent: so the suite
// tests the same carriers, the same checks and the same adapters that a site has.
//
// Everything in it but this page needs the build tag "conformance". It may know
// nothing but the vocabulary of package agents.
//
// Suite: https://github.com/modelcontextprotocol/conformance
package conformance
