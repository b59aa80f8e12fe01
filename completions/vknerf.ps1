# PowerShell completion of vknerf: the program itself says what may come next, so that both are of one version.
# A line ". FOLDER\vknerf.ps1" in the file that $PROFILE names loads this script in every session.

Register-ArgumentCompleter -Native -CommandName 'vknerf', 'vknerf.exe' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    # The words up to the cursor without quotation marks. The last one, which may be empty, is completed.
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition } | ForEach-Object {
        $length = [Math]::Min($_.Extent.EndOffset, $cursorPosition) - $_.Extent.StartOffset
        $_.Extent.Text.Substring(0, $length) -replace '["'']'
    })
    if ($commandAst.CommandElements[$words.Count - 1].Extent.EndOffset -lt $cursorPosition) { $words += '' }
    $program, $arguments = $words
    $word = $words[-1]
    # PowerShell replaces only the part behind the last comma.
    $kept = [Math]::Max(0, $word.Length - ($wordToComplete -replace '["'']').Length)
    # Windows PowerShell drops an empty argument, unless its quotation marks are part of the argument.
    $arguments = @($arguments)
    if ($word -eq '' -and $PSVersionTable.PSVersion.Major -lt 6) { $arguments[-1] = '""' }

    $encoding = [Console]::OutputEncoding
    try {
        [Console]::OutputEncoding = New-Object System.Text.UTF8Encoding
        $lines = @(& $program help --complete @arguments 2>$null)
    } finally {
        [Console]::OutputEncoding = $encoding
    }
    foreach ($line in $lines) {
        if ($line -match '^:(files|directories) (\d+)$') {
            $all = $Matches[1] -eq 'files'
            $at = [int]$Matches[2]
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($word.Substring($at)) |
                Where-Object { $all -or $_.ResultType -eq 'ProviderContainer' } | ForEach-Object {
                    $text = ($word.Substring(0, $at) + $_.CompletionText).Substring($kept)
                    [System.Management.Automation.CompletionResult]::new($text, $_.ListItemText, $_.ResultType, $_.ToolTip)
                }
        } else {
            $reply, $help = $line -split "`t", 2
            $text = $reply.Substring($kept)
            if ($text -match '[^\w./\\:=,~%+-]') { $text = "'" + $text.Replace("'", "''") + "'" }
            if (-not $help) { $help = $reply }
            [System.Management.Automation.CompletionResult]::new($text, $reply, 'ParameterValue', $help)
        }
    }
}
