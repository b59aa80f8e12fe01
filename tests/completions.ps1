#!/usr/bin/env pwsh
# tests/completions.ps1 FOLDER
# Tests completions/vknerf.ps1 on Windows, in the checkout: completes command lines. FOLDER has vknerf.exe.
param([string]$folder)

$env:PATH = (Resolve-Path $folder).Path + ';' + $env:PATH
. "$PSScriptRoot/../completions/vknerf.ps1"

# Typed text, and one of the lines that it is completed to.
$rows = @(
    @('vknerf ', 'vknerf train'),
    @('vknerf tra', 'vknerf train'),
    @('vknerf help rend', 'vknerf help render'),
    @('vknerf train scenes --prec', 'vknerf train scenes --precision'),
    @('vknerf train --precision ', 'vknerf train --precision fp16'),
    @('vknerf train --set loss.ki', 'vknerf train --set loss.kind='),
    @('vknerf train --set=loss.kind=hu', 'vknerf train --set=loss.kind=huber'),
    @('vknerf render run --maps rgb,opa', 'vknerf render run --maps rgb,opacity'),
    @('vknerf train ass', 'vknerf train .\assets'),
    @('vknerf train --config READ', 'vknerf train --config .\README.md')
)
$failed = 0
foreach ($row in $rows) {
    $line, $wanted = $row
    $found = TabExpansion2 -inputScript $line -cursorColumn $line.Length
    $lines = @($found.CompletionMatches | ForEach-Object { $line.Substring(0, $found.ReplacementIndex) + $_.CompletionText })
    if ($lines -cnotcontains $wanted) {
        "FAILED: '$line' becomes '$($lines -join "', '")', not '$wanted'"
        $failed = 1
    }
}
if (-not $failed) { 'all passed' }
exit $failed
