module agentsite

go 1.26.0
