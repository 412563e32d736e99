" pnet.vim: colours .pnet files in Vim. Put it into ~/.vim/syntax/pnet.vim and add to ~/.vim/ftdetect/pnet.vim:
"   autocmd BufNewFile,BufRead *.pnet setfiletype pnet
if exists("b:current_syntax")
    finish
endif

syntax match pnetCall "\<\h\w*\ze\s*("
syntax match pnetCall "\(|>\s*\)\@<=\h\w*"
syntax match pnetKey "\<\h\w*\ze\s*==\@!"
syntax match pnetOperator "|>\|\.\.\|[-+*/%]\|[=!<>]=\|[<>]"
syntax match pnetNumber "\<\d\+\(\.\d\+\)\?\([eE][-+]\?\d\+\)\?\>"
syntax match pnetUnit "\(\<\d\+\(\.\d\+\)\?\([eE][-+]\?\d\+\)\?\s*\)\@<=\h\w*\(/\h\w*\)\?"
syntax keyword pnetStructure network def use param train pipeline machine
syntax keyword pnetStatement input register loss return
syntax keyword pnetRepeat for in
syntax keyword pnetConditional if else
syntax keyword pnetLogical and or not
syntax keyword pnetBoolean yes no true false
syntax keyword pnetType f32 class
syntax match pnetEscape "\\[\\\"nt]" contained
syntax match pnetComment "#.*$" contains=@Spell
syntax region pnetText start=+"+ skip=+\\.+ end=+"+ oneline contains=pnetEscape,@Spell

highlight default link pnetStructure Structure
highlight default link pnetStatement Statement
highlight default link pnetRepeat Repeat
highlight default link pnetConditional Conditional
highlight default link pnetLogical Operator
highlight default link pnetOperator Operator
highlight default link pnetBoolean Boolean
highlight default link pnetType Type
highlight default link pnetCall Function
highlight default link pnetKey Identifier
highlight default link pnetNumber Number
highlight default link pnetUnit Special
highlight default link pnetText String
highlight default link pnetEscape SpecialChar
highlight default link pnetComment Comment

setlocal commentstring=#\ %s
let b:current_syntax = "pnet"
