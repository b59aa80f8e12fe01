// Completes pages whose content is in the file: certificates and refinements of cameras.

document.querySelectorAll('.view').forEach(addSlider);
addContents();
