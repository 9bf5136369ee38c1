#!/bin/sh
# How these files were made, by version 0.1.0 (commit e7a6585): `sh make.sh` in an empty folder.
set -e
phygail scenarios --uavs 20 --damage 0.5 --cases 2 --seed 7 --out scenarios.json
phygail compare --scenarios scenarios.json --methods sidr,reach,phygail,phygail-clone,phygail-paper --workers 1 --out compare
phygail reproduce overall --cases 1 --uavs 20 --damage 0.5 --methods sidr,phygail --workers 1 --out reproduce
phygail experts --pool decentralized --without reach,cr-ma --damage 0.5 --cases 10 --workers 1 --out experts.h5
phygail train phygail-paper --experts experts.h5 --profile smoke --epochs 2 --no-tensorboard --out train-paper \
    --set worlds=2 --set horizon=6 --set batch_graphs=12 --set ppo_epochs=1 --set width=8 --set layers=1
phygail train phygail --seed 123456 --no-tensorboard --out train-evolve --set generations=2 --set population=4 \
    --set worlds=3 --set validate_every=1 --set validation_sizes=20 --set validation_damage=0.5 \
    --set validation_cases=1 --set clone_worlds=3 --set clone_passes=2
phygail train gdr-ts --out gdr-ts.safetensors --set updates=2 --set tasks=2 --set scenarios=1 --set plans=2 \
    --set sizes=20 --set evaluate_every=1 --set online=1
phygail train cr-ma --out cr-ma.safetensors --set episodes=2 --set warmup=1 --set evaluate_every=2
phygail export train-paper/best.safetensors --out paper.onnx
phygail export train-evolve/best.safetensors --out evolved.onnx
find . -name '*.png' -delete
